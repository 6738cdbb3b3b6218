package eventlog

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// TestAnEventFindsItsSubscribers among random ones, of which some have left.
func TestAnEventFindsItsSubscribers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	name := func() string {
		return strings.Repeat("a", random.IntN(3)) + strings.Repeat("b", random.IntN(3)) + strings.Repeat("c", random.IntN(3))
	}
	x := newIndex()
	var all []*subscriber
	for range 5000 {
		if n := random.IntN(60); n < len(all) {
			x.remove(all[n])
			x.remove(all[n])
			all = slices.Delete(all, n, n+1)
		}
		s := &subscriber{query: paddock.EventQuery{Prefix: name()}}
		for range random.IntN(4) {
			s.query.Names = append(s.query.Names, name())
		}
		x.add(s)
		all = append(all, s)
		event, found := name(), set{}
		x.each(event, func(s *subscriber) { found[s] = struct{}{} })
		for _, s := range all {
			selects := slices.Contains(s.query.Names, event) || len(s.query.Names) == 0 && strings.HasPrefix(event, s.query.Prefix)
			if _, is := found[s]; is != selects {
				t.Fatalf("of %d, one with the names %q and the prefix %q is found for %q: %t", len(all), s.query.Names, s.query.Prefix, event, is)
			}
		}
	}
	for _, s := range all {
		x.remove(s)
	}
	if len(x.all)+len(x.names)+len(x.prefixes) > 0 || x.lengths != newIndex().lengths {
		t.Errorf("when all have left, it has %+v", x)
	}
}

// filled returns a tail with an event of the lock "other" at 100.
func filled() *tail {
	tail := newTail()
	tail.add(segment{}, bound{epoch: 1, upTo: 99, newest: 99})
	tail.put("other", 100)
	return tail
}

// put adds an event.
func (t *tail) put(name string, id int64) {
	t.add(segment{items: []item{{Event: &lock.Event{ID: id, Name: name}}}, upTo: id}, bound{epoch: 1, upTo: id, newest: id})
}

// TestASleeperIsNotAskedAboutOtherNames, and is not left behind by their events: it need not read the table.
func TestASleeperIsNotAskedAboutOtherNames(t *testing.T) {
	t.Parallel()
	tail := filled()
	sub := sleeper(t, tail, "a", 100, tail.changes)
	const last = 100 + 3*tailLength
	for id := int64(101); id <= last; id++ {
		if tail.put("other", id); awake(sub) {
			t.Fatalf("the event %d of another lock has woken it", id)
		}
	}
	tail.put("a", last+1)
	tail.put("a", last+2)
	if !awake(sub) {
		t.Fatal("it sleeps on")
	}
	s, known, _ := tail.since(tail.stop(sub))
	if !known || len(s.items) != 2 || s.gap || awake(sub) {
		t.Errorf("it gets %+v", s)
	}
	tail.put("a", last+3)
	if awake(sub) {
		t.Error("it is woken although it has stopped")
	}
}

// TestOneOfSeveralNamesWakes a subscriber, once.
func TestOneOfSeveralNamesWakes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "b", "c"} {
		tail := filled()
		sub := &subscriber{query: paddock.EventQuery{Names: []string{"a", "b", "c"}}, wake: make(chan struct{}, 1)}
		if !tail.listen(sub, 100, tail.changes) {
			t.Fatal("the tail has changed")
		}
		tail.put(name, 101)
		tail.put("b", 102)
		if !awake(sub) || tail.stop(sub) != 100 || len(tail.listening.names) > 0 {
			t.Errorf("after an event of %s: %+v", name, sub)
		}
	}
}

// TestATimeoutGoesOn: a subscriber that no event has woken has all events up to the end of the tail.
func TestATimeoutGoesOn(t *testing.T) {
	t.Parallel()
	tail := filled()
	sub := sleeper(t, tail, "a", 100, tail.changes)
	tail.put("other", 200)
	if id := tail.stop(sub); id != 200 {
		t.Errorf("it goes on after %d", id)
	}
}

// TestAChangeIsNotSleptThrough: it may have come after the subscriber has looked.
func TestAChangeIsNotSleptThrough(t *testing.T) {
	t.Parallel()
	tail := filled()
	_, _, change := tail.since(100)
	tail.put("a", 101)
	if tail.listen(&subscriber{query: paddock.EventQuery{Names: []string{"a"}}}, 100, change) {
		t.Error("it sleeps")
	}
}

// TestEveryoneLearnsOfABrokenEntry, since it may be one of any lock.
func TestEveryoneLearnsOfABrokenEntry(t *testing.T) {
	t.Parallel()
	tail := filled()
	sub := sleeper(t, tail, "a", 100, tail.changes)
	broken := item{Event: &lock.Event{ID: 101}, unreadable: &paddock.Unreadable{}}
	tail.add(segment{items: []item{broken}, upTo: 101}, bound{epoch: 1, upTo: 101, newest: 101})
	if !awake(sub) || tail.stop(sub) != 100 {
		t.Errorf("it sleeps on: %+v", sub)
	}
}

// TestALostEventIsAGapForAllNames: the next event shows that it was lost, whatever its name.
func TestALostEventIsAGapForAllNames(t *testing.T) {
	t.Parallel()
	tail := filled()
	lost := firstOf(5)
	sub := sleeper(t, tail, "a", lost, tail.changes)
	tail.put("other", firstOf(5+epoch.BatchJump))
	if !awake(sub) {
		t.Fatal("it sleeps on")
	}
	if s, known, _ := tail.since(tail.stop(sub)); !known || !s.gap {
		t.Errorf("it gets %+v", s)
	}
}

// TestASleeperIsNotWokenByOtherKinds, and neither is one that waits for sessions alone.
func TestASleeperIsNotWokenByOtherKinds(t *testing.T) {
	t.Parallel()
	tail := filled()
	names := &subscriber{
		query: paddock.EventQuery{Names: []string{"a", "b"}, Kinds: []lock.Kind{lock.Revoked}}, wake: make(chan struct{}, 1),
	}
	sessions := &subscriber{query: paddock.EventQuery{Sessions: []lock.SessionRef{1}}, wake: make(chan struct{}, 1)}
	for _, s := range []*subscriber{names, sessions} {
		if !tail.listen(s, 100, tail.changes) {
			t.Fatal("it does not sleep")
		}
	}
	if len(tail.listening.prefixes) > 0 {
		t.Error("every event asks the one that waits for sessions alone")
	}
	tail.put("b", 101)
	if awake(names) || awake(sessions) {
		t.Fatal("an event that it does not select has woken a sleeper")
	}
	tail.add(segment{items: []item{{Event: &lock.Event{ID: 102, Name: "b", Kind: lock.Revoked}}}, upTo: 102}, bound{epoch: 1, upTo: 102, newest: 102})
	if !awake(names) || awake(sessions) {
		t.Error("the revocation has woken the wrong one")
	}
	if upTo := tail.stop(names); upTo != 101 {
		t.Errorf("it goes on after %d", upTo)
	}
	tail.stop(sessions)
}
