package store

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// aCommitWaits are the commits that slowCommits keep waiting in this database.
const aCommitWaits = ` from pg_locks where locktype = 'advisory' and not granted
	and database = (select oid from pg_database where datname = current_database())`

// TestASwapWhoseCommitIsLateStallsNobodyElse, and its caller is told what is so when it is
// through; or that nobody knows, if its connection ends. Readers of events do not pass it.
func TestASwapWhoseCommitIsLateStallsNobodyElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  string
		want error
	}{
		"it gets through": {"select pg_advisory_unlock(42)", nil},
		"it does not":     {"select pg_terminate_backend(pid)" + aCommitWaits, lock.ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			s := x.store()
			x.releases(s, x.acquires(s, wants("slow")))
			x.exec(slowCommits)
			x.patient(s)
			a, done := wants("slow"), make(chan error, 1)
			go func() {
				_, err := s.Acquire(t.Context(), a)
				done <- err
			}()
			x.until("select exists (select" + aCommitWaits + ")")
			for began := time.Now(); len(s.late) == 0; { // each of these waits behind the slow commit, until that is late
				x.releases(s, x.acquires(s, wants("other")))
				if time.Since(began) > time.Minute {
					t.Fatal("the group was not relieved")
				}
			}
			seen, err := s.Events(t.Context(), lock.EventQuery{})
			if err != nil {
				t.Fatal(err)
			}
			x.exec(c.end)
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("the late one was answered with %v, want %v", err, c.want)
			}
			missed, err := s.Events(t.Context(), lock.EventQuery{Cursor: seen.Next, Name: "slow"})
			if told := len(missed.Items) == 1; err != nil || told != (c.want == nil) {
				t.Errorf("a reader who had seen what came after finds %+v, %v", missed.Items, err)
			}
			x.exec("drop trigger slow_commit on paddock.events")
			x.exec("select pg_advisory_unlock_all()")
			if g := x.acquires(s, a); g.Replayed != (c.want == nil) {
				t.Errorf("asked again, it is replayed: %t", g.Replayed)
			}
		})
	}
}
