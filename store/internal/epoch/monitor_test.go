package epoch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/store/internal/database"
)

func TestEpochIsRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	e := h.read()
	if !e.Here || e.Number != 1 || e.Quorum || e.Replicates || e.Flushed <= 0 || !e.ClosedUntil.IsZero() {
		t.Errorf("a new database is at %+v", e)
	}
	if e.LastBatch != 0 || e.LastEvent != 0 {
		t.Errorf("a new database has the batch %d and the event %d, want none", e.LastBatch, e.LastEvent)
	}
	h.draw(100)
	h.event(5)
	h.exec("update paddock.epochs set closed_until = '2001-02-03 04:05:06.789012Z', longest_ms = 1500, quorum = true")
	var after time.Time
	before := e.Now
	e = h.read()
	if !e.Started.Before(e.Now) || e.Started.IsZero() {
		t.Errorf("the server started at %v, now is %v", e.Started, e.Now)
	}
	if err := h.outside.QueryRow(t.Context(), "select clock_timestamp()").Scan(&after); err != nil {
		t.Fatal(err)
	}
	if e.Now.Before(before) || e.Now.After(after) || e.Now.Location() != time.UTC {
		t.Errorf("now is %v, not between %v and %v in UTC", e.Now, before, after)
	}
	closedUntil := time.Date(2001, 2, 3, 4, 5, 6, 789012000, time.UTC)
	if e.ClosedUntil != closedUntil || e.Longest != 1500*time.Millisecond || !e.Quorum {
		t.Errorf("the epoch is %+v", e)
	}
	if e.LastBatch != 100 || e.LastEvent != 5*4096+4095 {
		t.Errorf("the last batch is %d and the event %d, want the last of batch 5", e.LastBatch, e.LastEvent)
	}
	h.exec("update paddock.horizon set pruned = 1000000")
	if e := h.read(); e.LastEvent != 1000000 {
		t.Errorf("the event is %d, want the pruned one", e.LastEvent)
	}
	h.exec("delete from paddock.epochs")
	if _, err := Read(t.Context(), h.outside, ""); !errors.Is(err, errNoEpoch) {
		t.Errorf("of no epoch: %v", err)
	}
	if _, err := h.monitor.Refresh(); err == nil || h.monitor.Recover(ErrChanged) == nil {
		t.Error("no epoch is recovered")
	}
}

func TestLostHistoryStartsAnEpoch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		begins bool
	}{
		"a fail-over":            {failOver, true},
		"another server":         {"update paddock.epochs set system_identifier = system_identifier + 1", true},
		"batches are lost":       {"select setval('paddock.event_batch_ids', 8)", true},
		"batches without events": {"select setval('paddock.event_batch_ids', 9)", false},
		"an event is lost":       {"delete from paddock.event_batches where id = 9", true},
		"an older event is gone": {"delete from paddock.event_batches where id = 8", false},
		"all events are pruned": {`with gone as (delete from paddock.event_batches)
			update paddock.horizon set pruned = 9 * 4096 + 7`, false},
		"another replica wrote": {"insert into paddock.event_batches values (10, clock_timestamp(), '{}')", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.draw(160)
			h.event(8)
			h.event(9)
			if _, err := h.monitor.Refresh(); err != nil {
				t.Fatal(err)
			}
			h.exec(c.change)
			if changed := errors.Is(h.read().Check(h.monitor.Known()), ErrChanged); changed != c.begins {
				t.Errorf("Check reports a change: %t, want %t", changed, c.begins)
			}
			if _, err := h.monitor.Refresh(); err != nil {
				t.Fatal(err)
			}
			if !c.begins {
				h.epochs(1)
				return
			}
			h.epochs(2)
			if _, err := h.monitor.Refresh(); err != nil || h.read().Check(h.monitor.Known()) != nil {
				t.Errorf("the next epoch: %v, %v", err, h.read().Check(h.monitor.Known()))
			}
			if h.monitor.Recover(ErrChanged) != nil {
				t.Error("a command that comes late is not decided again")
			}
			h.epochs(2)
			e := h.read()
			if e.LastBatch < 9+BatchJump || h.number("select nextval('paddock.event_batch_ids')") <= 9+BatchJump {
				t.Errorf("the last batch is %d, not far above 9", e.LastBatch)
			}
		})
	}
}

func TestManyProcessesStartOneEpoch(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	monitors := []*Monitor{h.monitor, h.another(), h.another()}
	h.exec(failOver)
	var done sync.WaitGroup
	for i := range 12 {
		done.Go(func() {
			if monitors[i%len(monitors)].Recover(ErrChanged) != nil {
				t.Error("the epoch is not recovered")
			}
		})
	}
	done.Wait()
	h.epochs(2)
}

func TestGrantsArePausedForTheLongestLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quorum bool
		want   time.Duration
	}{
		"without a quorum": {false, 90 * time.Second},
		"with a quorum":    {true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			if h.monitor.Recover(&LongerError{89001 * time.Millisecond}) != nil { // recorded as whole seconds
				t.Fatal("the length is not recorded")
			}
			if err := h.monitor.Known().CheckLength(90 * time.Second); err != nil {
				t.Errorf("the monitor does not know the length: %v", err)
			}
			h.exec("update paddock.epochs set longest_ms = 1000, quorum = $1", c.quorum) // lost in the fail-over
			h.exec(`insert into paddock.sessions (ref, id, holder, ttl_ms, grace_ms, revoked_leases, opened_at, expires_at)
				values (1, gen_random_uuid(), 'h', 60000, 0, 2, clock_timestamp(), clock_timestamp())`)
			h.recover()
			e := h.read()
			var began time.Time
			if err := h.outside.QueryRow(t.Context(), "select began_at from paddock.epochs where epoch = 2").Scan(&began); err != nil {
				t.Fatal(err)
			}
			if e.Longest != 90*time.Second || e.Quorum != c.quorum || e.ClosedUntil.IsZero() != (c.want == 0) {
				t.Errorf("the next epoch is %+v", e)
			}
			if pause := e.ClosedUntil.Sub(began); c.want > 0 && (pause < c.want || pause > c.want+time.Second) {
				t.Errorf("grants are paused for %v, want %v", pause, c.want)
			}
			if n := h.number("select revoked_leases from paddock.sessions"); (n == 2) != c.quorum {
				t.Errorf("a session of which 2 leases were revoked tells of %d; it may have lost some: %t", n, !c.quorum)
			}
		})
	}
}

// TestEveryProcessReportsTheLongestLease: the process that starts the epoch may not know it, and the database may have
// lost it.
func TestEveryProcessReportsTheLongestLease(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(*Monitor) bool{
		"after a command was refused": func(m *Monitor) bool { return m.Recover(ErrLengthLost) == nil },
		"without any command":         func(m *Monitor) bool { _, err := m.Refresh(); return err == nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			if h.monitor.Recover(&LongerError{time.Minute}) != nil {
				t.Fatal("the length is not recorded")
			}
			h.exec(`insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, closed_until, longest_ms)
				select epoch + 1, clock_timestamp(), system_identifier, timeline, 'test', clock_timestamp() + interval '1 second', 1000
				from paddock.epochs`)
			if err := h.read().Check(h.monitor.Known()); !errors.Is(err, ErrLengthLost) {
				t.Errorf("Check = %v, want ErrLengthLost", err)
			}
			if !mend(h.monitor) {
				t.Fatal("the pause is not extended")
			}
			h.epochs(2)
			if e := h.read(); e.Longest != time.Minute || e.ClosedUntil.Sub(e.Now) < 30*time.Second {
				t.Errorf("the epoch is %+v, want a pause of a minute", e)
			}
		})
	}
}

// TestQuorumNeedsNoLongerPause: nothing was lost, and the recorded length only grows.
func TestQuorumNeedsNoLongerPause(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.exec("update paddock.epochs set quorum = true, longest_ms = 60000")
	if _, err := h.monitor.Refresh(); err != nil {
		t.Fatal(err)
	}
	if h.monitor.Recover(&LongerError{time.Second}) != nil { // of a process that did not know of the minute yet
		t.Fatal("the length is not recorded")
	}
	if e := h.read(); e.Longest != time.Minute {
		t.Errorf("the longest lease is %v, want a minute as before", e.Longest)
	}
	h.exec("update paddock.epochs set longest_ms = 1000")
	if h.monitor.Recover(ErrLengthLost) != nil {
		t.Fatal("the length is not recorded")
	}
	if e := h.read(); e.Longest != time.Minute || !e.ClosedUntil.IsZero() {
		t.Errorf("the epoch is %+v, want no pause", e)
	}
}

// TestLongerLeaseAfterAFailOver: its length must not extend the pause, which is about the leases before.
func TestLongerLeaseAfterAFailOver(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.exec(failOver)
	if h.monitor.Recover(&LongerError{time.Hour}) != nil {
		t.Fatal("the epoch is not recovered")
	}
	h.epochs(2)
	if e := h.read(); e.Longest != 0 || e.ClosedUntil.After(e.Now) {
		t.Errorf("the epoch is %+v, want no pause", e)
	}
}

func TestOtherErrorsAreNotMended(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, err := range []error{database.ErrNoStandby, errNoEpoch, context.Canceled} {
		if h.monitor.Recover(err) == nil {
			t.Errorf("%v is recovered", err)
		}
	}
	h.epochs(1)
}

// TestPollReplacesConnectionsToAStandby: a standby answers reads, but no epoch starts there.
func TestPollReplacesConnectionsToAStandby(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	name := pgx.Identifier{h.outside.Config().Database}.Sanitize()
	h.exec("alter database " + name + " set default_transaction_read_only = on")
	m := New(h.monitor.db)
	m.db.Reset()
	nothing := func(Epoch) error { return nil }
	h.exec(failOver)
	m.Poll(nothing)
	h.epochs(1)
	h.exec("alter database " + name + " reset default_transaction_read_only")
	m.Poll(nothing)
	h.epochs(2)
}
