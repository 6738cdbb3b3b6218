package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// slowCommits makes the commits with events of locks whose names begin with "slow" wait for the advisory lock (1, 1),
// as they might for a standby.
const slowCommits = `
	create function slow_commit() returns trigger language plpgsql as $$
	begin
		perform set_config('lock_timeout', '0', true), pg_advisory_xact_lock(1, 1);
		return null;
	end $$;
	create constraint trigger slow after insert on paddock.event_batches deferrable initially deferred
		for each row when (new.entries::text like '%slow%') execute function slow_commit()`

// TestALateCommitStallsNoOtherCall: other names go on, readiness tells, and the caller is told what happened when the
// commit has ended, or that nothing is known, if its connection has. Readers of events do not go past it.
func TestALateCommitStallsNoOtherCall(t *testing.T) {
	t.Parallel()
	const waits = ` from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'`
	for name, c := range map[string]struct {
		end  string
		want error
	}{
		"it succeeds": {"select", nil}, "its connection ends": {"select pg_terminate_backend(pid)" + waits, lock.ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			s, outside, holder := open(t, url), connect(t, url), connect(t, url)
			mustRelease(t, s, mustAcquire(t, s, acquire("slow")))
			exec(t, outside, slowCommits)
			exec(t, holder, "begin")
			exec(t, holder, "select pg_advisory_xact_lock(1, 1)")
			a := acquire("slow")
			late := start(s, t.Context(), a)
			until(t, "the commit waits", func() bool { return number(t, outside, "select count(*)"+waits) > 0 })
			for i := 0; s.Ready(t.Context()) == nil; i++ { // each of these waits behind the commit, until that is late
				mustAcquire(t, s, acquire(fmt.Sprint("other:", i)))
			}
			mustAcquire(t, s, acquire("another"))
			seen, err := s.Events(t.Context(), paddock.EventQuery{Limit: paddock.MaxLimit})
			if err != nil || len(seen.Items) != 2 {
				t.Errorf("beside the late commit there are the events %+v, %v", seen.Items, err)
			}
			exec(t, outside, c.end)
			if c.want == nil {
				exec(t, holder, "commit")
			}
			if late.over(t); !errors.Is(late.err, c.want) {
				t.Errorf("the late call is answered %v, want %v", late.err, c.want)
			}
			missed, err := s.Events(t.Context(), paddock.EventQuery{Cursor: seen.Next, Names: []string{"slow"}})
			if read := len(missed.Items) == 1; err != nil || read != (c.want == nil) {
				t.Errorf("a reader that has seen what came before is told %+v, %v", missed.Items, err)
			}
			exec(t, outside, "drop trigger slow on paddock.event_batches")
			if g := mustAcquire(t, s, a); g.Replayed != (c.want == nil) {
				t.Errorf("the same call again is a replay: %t", g.Replayed)
			}
			until(t, "the store is ready", func() bool { return s.Ready(t.Context()) == nil })
		})
	}
}
