package locktest

import (
	"fmt"

	"github.com/paddock-lock/paddock/lock"
)

func setBounds(s *fixture) {
	var tooMany, most []int
	for n := range lock.MaxSetSize + 1 {
		tooMany = append(tooMany, n)
	}
	most = tooMany[:lock.MaxSetSize]
	with := func(m lock.Member) []lock.Member { return append(s.set(1, 2), m) }
	for field, wrong := range map[string][]lock.Acquire{
		"locks":            {{Set: s.set(tooMany...)}},
		"locks/2/name":     {{Set: s.set(1, 2, 1)}, {Set: with(lock.Member{})}, {Set: with(lock.Member{Name: "a/b"})}},
		"locks/1/name":     {{Set: s.set(3, 3, 1)}},
		"locks/2/mode":     {{Set: with(lock.Member{Name: s.other(3), Mode: 7})}},
		"locks/2/capacity": {{Set: with(lock.Member{Name: s.other(3), Mode: lock.Permit})}, {Set: with(lock.Member{Name: s.other(3), Capacity: 1})}},
		"locks/0/name":     {{Set: []lock.Member{{}}}},
		"ttl_ms":           {{Set: s.set(1, 2), TTL: lock.MinTTL - 1}},
	} {
		for _, a := range wrong {
			a.Holder = "first"
			_, err := s.locks.Acquire(s.ctx, a)
			s.expectInvalid(a, err, field)
		}
	}
	for field, wrong := range map[string][]string{
		"names":   s.others(tooMany...),
		"names/2": s.others(1, 2, 1),
		"names/1": {s.other(1), ""},
	} {
		_, err := s.locks.Renew(s.ctx, lock.Renew{Set: wrong, LeaseID: newID()})
		s.expectInvalid(wrong, err, field)
		s.expectInvalid(wrong, s.locks.Release(s.ctx, lock.Release{Set: wrong, LeaseID: newID()}), field)
	}
	_, err := s.locks.Renew(s.ctx, lock.Renew{Set: s.others(1, 2)})
	s.expectInvalid("no lease_id", err, "lease_id")
	if held := s.heldBy(); len(held) != 0 {
		s.Errorf("refused calls used the locks %v", held)
	}
	g := s.mustAcquireSet("first", most...)
	s.expectSet(g, s.others(most...))
	for i := range most {
		if l := g.Members[i]; l.Token != g.Token {
			s.Errorf("the lease %+v has not token %d", l, g.Token)
		}
	}
	s.must(s.release(g))
}

func setBatch(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2)
	results := s.locks.Batch(s.ctx, []lock.Command{
		lock.Acquire{Set: s.set(3, 4), Holder: "first", TTL: longTTL, LeaseID: newID()},
		lock.Renew{Set: namesOf(g), LeaseID: g.ID},
		lock.Release{Set: namesOf(g), LeaseID: g.ID},
		lock.Acquire{Name: s.other(3), Holder: "alone", TTL: longTTL, LeaseID: newID()},
	})
	if len(results) != 4 {
		s.Fatalf("4 items have the results %+v", results)
	}
	for i, field := range []string{"locks", "names", "names"} {
		s.expectInvalid(fmt.Sprint("item ", i), results[i].Err, field)
	}
	s.must(results[3].Err)
	s.expectHeld(map[int]string{1: "first", 2: "first", 3: "alone", 4: ""})
}
