package store_test

import (
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestAWaiterForSeveralLocksCountsOnce: one waits at five levels of a tree, and one for a set of four locks, two of
// which have an ancestor. The list agrees with the counts.
func TestAWaiterForSeveralLocksCountsOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	if _, err := s.DeclareTree(t.Context(), "tree"); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, acquire("tree:1:2:3:4"))
	waitForSet(t, s, t.Context(), waitingAs("tree:1:2:3:4", "deep"))
	mustAcquire(t, s, acquire("a"))
	set := waitingAs("", "set")
	set.Locks = []lock.Member{{Name: "a"}, {Name: "b"}, {Name: "tree:x"}, {Name: "tree:y"}}
	waitForSet(t, s, t.Context(), set)
	const waitedFor = 1 + 4 // and four locks above these
	var counted store.LockCounts
	until(t, "all places are counted", func() bool {
		counted = s.Stats().Locks
		return counted.Waiters == 2 && counted.Contended >= waitedFor
	})
	page, err := s.Locks(t.Context(), paddock.LockQuery{Contended: true})
	if counted.Contended != waitedFor || err != nil || len(page.Items) != waitedFor {
		t.Errorf("counted %+v, and listed %d locks with waiters, %v; want two waiters on %d locks", counted, len(page.Items), err, waitedFor)
	}
}
