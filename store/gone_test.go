package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestAWaiterIsToldThatItsRowIsGone: an operator deletes the row of a lock by hand, while a call waits for it alone, in
// a tree or for a set. The lock may have been acquired again before the waiter is told.
func TestAWaiterIsToldThatItsRowIsGone(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		set   []lock.Member
		again bool
	}{
		"alone": {}, "acquired again": {again: true}, "a set": {set: []lock.Member{{Name: "a"}, {Name: "tree:b"}}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			s, other, outside := open(t, url), open(t, url), connect(t, url)
			if _, err := s.DeclareTree(t.Context(), "tree"); err != nil {
				t.Fatal(err)
			}
			mustAcquire(t, s, acquire("tree:b"))
			a := waitingAs("tree:b", "waiter")
			if c.set != nil {
				a.Locks = c.set
			}
			w := waitForSet(t, s, t.Context(), a)
			exec(t, outside, "delete from paddock.records where name = 'tree:b'")
			if c.again {
				mustAcquire(t, other, acquire("tree:b:c"))
			}
			w.over(t)
			if !errors.Is(w.err, lock.ErrHeld) || !strings.Contains(w.err.Error(), "tree:b in paddock.records is gone") {
				t.Errorf("the waiter was told %v", w.err)
			}
			for _, name := range []string{"a", "tree"} {
				if waitsAs(t, s, name, "waiter") {
					t.Errorf("the place at %s is left", name)
				}
			}
		})
	}
}
