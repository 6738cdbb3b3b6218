package locktest

import (
	"fmt"

	"github.com/paddock-lock/paddock/lock"
)

func setQueueCases() cases {
	return cases{
		"a set is served after those before it and before those after it": setInOrder,
		"sets with opposite orders of names are served in order":          setOpposite,
		"a chain of sets is served in order":                              setChain,
		"a set that leaves a chain makes way for the next":                setChainLeft,
		"sets without a common lock are independent":                      setApart,
		"readers of two sets hold their lock together":                    setSharesLock,
		"of waiting sets of permits as many are granted as fit":           setPermitsWait,
	}
}

func setInOrder(s *fixture) {
	one, two := s.hold(1, "holder"), s.hold(2, "holder")
	before := s.enqueue(lock.Acquire{Name: s.other(1), Holder: "before", Wait: lock.MaxWait})
	set := s.enqueue(lock.Acquire{Set: s.set(1, 2), Holder: "set", Wait: lock.MaxWait})
	after := s.enqueue(lock.Acquire{Name: s.other(1), Holder: "after", Wait: lock.MaxWait})
	beside := s.enqueue(lock.Acquire{Name: s.other(2), Holder: "beside", Wait: lock.MaxWait})
	s.must(s.release(two))
	s.expectHeld(map[int]string{1: "holder", 2: ""})
	s.must(s.release(one))
	g := before.mustBeWoken()
	s.expectHeld(map[int]string{1: "before", 2: ""})
	s.must(s.release(g))
	g = set.mustBeWoken()
	s.expectHeld(map[int]string{1: "set", 2: "set"})
	s.must(s.release(g))
	if a, b := after.mustBeWoken(), beside.mustBeWoken(); a.Token <= g.Token || b.Token <= g.Token {
		s.Errorf("tokens %d and %d were granted after %d", a.Token, b.Token, g.Token)
	}
	s.expectHeld(map[int]string{1: "after", 2: "beside"})
}

func setOpposite(s *fixture) {
	one, two := s.hold(1, "holder"), s.hold(2, "holder")
	var sets []*waitingCall
	for i := range 8 {
		numbers := [][]int{{1, 2}, {2, 1}, {2, 3, 1}}[i%3]
		sets = append(sets, s.enqueue(lock.Acquire{Set: s.set(numbers...), Holder: fmt.Sprint("set ", i), Wait: lock.MaxWait}))
	}
	s.must(s.release(one))
	s.must(s.release(two))
	for i, w := range sets {
		g := w.mustBeWoken()
		s.expectHeld(map[int]string{1: g.Holder, 2: g.Holder})
		if g.Token <= two.Token {
			s.Errorf("set %d has token %d after %d", i, g.Token, two.Token)
		}
		two = g
		s.must(s.release(g))
	}
	s.expectHeld(map[int]string{1: "", 2: "", 3: ""})
}

// enqueueChain lets the sets {1, 2}, {2, 3} and {3, 1} wait for locks that are held.
func (s *fixture) enqueueChain() (held []lock.Grant, sets []*waitingCall) {
	for n := 1; n <= 3; n++ {
		held = append(held, s.hold(n, "holder"))
	}
	for i, numbers := range [][]int{{1, 2}, {2, 3}, {3, 1}} {
		sets = append(sets, s.enqueue(lock.Acquire{Set: s.set(numbers...), Holder: string(rune('a' + i)), Wait: lock.MaxWait}))
	}
	return held, sets
}

func setChain(s *fixture) {
	held, sets := s.enqueueChain()
	for i := len(held) - 1; i >= 0; i-- {
		s.must(s.release(held[i]))
	}
	want := []map[int]string{{1: "a", 2: "a", 3: ""}, {1: "", 2: "b", 3: "b"}, {1: "c", 2: "", 3: "c"}}
	for i, w := range sets {
		g := w.mustBeWoken()
		s.expectHeld(want[i])
		s.must(s.release(g))
	}
}

func setChainLeft(s *fixture) {
	held, sets := s.enqueueChain()
	s.must(s.release(held[1]))
	s.must(s.release(held[2]))
	s.expectHeld(map[int]string{1: "holder", 2: "", 3: ""})
	sets[0].cancelAndWait()
	g := sets[1].mustBeWoken()
	s.expectHeld(map[int]string{1: "holder", 2: "b", 3: "b"})
	s.must(s.release(held[0]))
	s.expectHeld(map[int]string{1: "", 2: "b", 3: "b"})
	s.must(s.release(g))
	sets[2].mustBeWoken()
	s.expectHeld(map[int]string{1: "c", 2: "", 3: "c"})
}

func setApart(s *fixture) {
	one, two := s.mustAcquireSet("a", 1, 2), s.mustAcquireSet("b", 3, 4)
	first := s.enqueue(lock.Acquire{Set: s.set(1, 2), Holder: "c", Wait: lock.MaxWait})
	second := s.enqueue(lock.Acquire{Set: s.set(3, 4), Holder: "d", LeaseID: first.request.LeaseID, Wait: lock.MaxWait})
	s.must(s.release(two))
	second.mustBeWoken()
	s.expectHeld(map[int]string{1: "a", 2: "a", 3: "d", 4: "d"})
	s.must(s.release(one))
	first.mustBeWoken()
	s.expectHeld(map[int]string{1: "c", 2: "c", 3: "d", 4: "d"})
}

func setSharesLock(s *fixture) {
	held := s.hold(1, "writer")
	var sets []*waitingCall
	for n := 2; n <= 4; n++ {
		set := append(s.set(n), lock.Member{Name: s.other(1), Mode: lock.Shared})
		sets = append(sets, s.enqueue(lock.Acquire{Set: set, Holder: fmt.Sprint("set ", n), Wait: lock.MaxWait}))
	}
	writer := s.enqueue(lock.Acquire{Name: s.other(1), Holder: "next", Wait: lock.MaxWait})
	s.must(s.release(held))
	var token lock.Token
	for i, w := range sets {
		g := w.mustBeWoken()
		if reads := g.Members[0]; i > 0 && reads.Token != token || reads.Token <= held.Token {
			s.Errorf("after tokens %d and %d the reader of set %d has %+v", held.Token, token, i, reads)
		}
		token = g.Members[0].Token
	}
	s.expectHeld(map[int]string{1: "set 2 set 3 set 4", 2: "set 2", 3: "set 3", 4: "set 4"})
	for _, w := range sets {
		s.must(s.release(w.grant))
	}
	writer.mustBeWoken()
}

func setPermitsWait(s *fixture) {
	held := s.hold(1, "holder")
	var sets []*waitingCall
	for n := 2; n <= 4; n++ {
		set := append(s.set(n), lock.Member{Name: s.other(1), Mode: lock.Permit, Capacity: 2})
		sets = append(sets, s.enqueue(lock.Acquire{Set: set, Holder: fmt.Sprint("set ", n), Wait: lock.MaxWait}))
	}
	s.must(s.release(held))
	a, b := sets[0].mustBeWoken(), sets[1].mustBeWoken()
	s.expectHeld(map[int]string{1: "set 2 set 3", 2: "set 2", 3: "set 3", 4: ""})
	if a.Token == b.Token || a.Members[0].Slot == b.Members[0].Slot {
		s.Errorf("the permits are %+v and %+v", a.Members[0], b.Members[0])
	}
	s.must(s.release(a))
	sets[2].mustBeWoken()
	s.expectHeld(map[int]string{1: "set 3 set 4", 2: "", 3: "set 3", 4: "set 4"})
}
