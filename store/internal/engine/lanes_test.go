package engine

import (
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// TestTheReleaseOfASetDoesNotOvertakeItsAcquire, which is in the lane of another one of their locks.
func TestTheReleaseOfASetDoesNotOvertakeItsAcquire(t *testing.T) {
	t.Parallel()
	var all lanes
	open := func(name string) *lane {
		l := &lane{inbox: newInbox(func(calls []*call) { refuse(calls, errFull) })}
		if all.lanes == nil {
			all.lanes = make(map[string]*lane)
		}
		all.lanes[name] = l
		return l
	}
	id, other := lock.LeaseID{1}, lock.LeaseID{2}
	acquire := callOf(lock.Acquire{Locks: []lock.Member{{Name: "a"}, {Name: "b"}}, LeaseID: id})
	release := func(id lock.LeaseID) *call {
		return callOf(lock.Release{Locks: []string{"a", "b"}, LeaseID: id})
	}
	b := open("b")
	all.divert([]*call{acquire}, all.find)
	a := open("a")
	if got := all.find(release(id)); got != b {
		t.Error("the release is in another lane than the acquire")
	}
	if got := all.find(release(other)); got != a {
		t.Error("another release is not in the lane of its first lock")
	}
	b.count(acquire, -1)
	if got := all.find(release(id)); got != a || b.calls != 0 || len(b.sets) != 0 {
		t.Errorf("after the acquire, its lane has %d calls, %v", b.calls, b.sets)
	}
	b.wait()
}
