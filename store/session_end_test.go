package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestEndedSessionsAreForgotten once nothing of them is left, and they are old. Until then a late call is told how its
// session has ended.
func TestEndedSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	outside := connect(t, url)
	s := open(t, url)
	old, late := openSession(t, s, time.Hour, 0), openSession(t, s, time.Hour, 0)
	mustAcquire(t, s, inSession("a", old))
	mustAcquire(t, s, inSession("b", late))
	for _, g := range []lock.SessionGrant{old, late} {
		if err := s.CloseSession(t.Context(), lock.CloseSession{ID: g.ID}); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, outside, "update paddock.sessions set ended_at = ended_at - interval '1 hour'")
	until(t, "both are cleared", func() bool {
		return number(t, outside, "select count(*) from paddock.sessions where cleared") == 2
	})
	s.Close()
	exec(t, outside, "update paddock.sessions set ended_at = ended_at - interval '8 days' where ref = $1", int64(old.ID.Ref()))
	s = open(t, url)
	until(t, "the old one is deleted", func() bool { return number(t, outside, "select count(*) from paddock.sessions") == 1 })
	e := new(lock.Error)
	if _, err := s.RenewSession(t.Context(), lock.RenewSession{ID: old.ID}); !errors.As(err, &e) || e.Code != lock.ErrSessionLost || e.Ended != 0 {
		t.Errorf("the heartbeat of a forgotten session: %v", err)
	}
	if _, err := s.Acquire(t.Context(), inSession("b", late)); !errors.As(err, &e) || e.Code != lock.ErrSessionLost || e.Ended != lock.Released {
		t.Errorf("an acquire in the session that was closed an hour ago: %v", err)
	}
}

// TestALeaseOfAnEndedSessionIsEndedWheneverItAppears, such as one that another application has put back: a session is
// looked at for some time after its end, although nothing of it was left.
func TestALeaseOfAnEndedSessionIsEndedWheneverItAppears(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	g := openSession(t, s, time.Hour, 0)
	mustAcquire(t, s, inSession("a", g))
	exec(t, outside, "create table public.kept as select * from paddock.records where name = 'a'")
	if err := s.CloseSession(t.Context(), lock.CloseSession{ID: g.ID}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // of which the second one ends in a look that began after the first one's was over
		short := openSession(t, s, lock.MinTTL, 0)
		until(t, "the end of a short session is recorded", func() bool {
			return number(t, outside, "select ended::bigint from paddock.sessions where ref = $1", int64(short.ID.Ref())) != 0
		})
	}
	exec(t, outside, "delete from paddock.records where name = 'a'")
	exec(t, outside, "update public.kept set revision = revision + 10")
	exec(t, outside, "insert into paddock.records select * from public.kept")
	until(t, "the lease is ended", func() bool {
		return number(t, outside, "select count(*) from paddock.records where lease_id is not null") == 0
	})
}

// TestAHeartbeatThatIsNotVisibleCounts: it was decided in time, and its commit waits, for a standby, say, until the
// session is past its end as others see it. Nothing in the session is refused for that: an acquire is granted, the token
// of a lease is current, and a fenced write under a permit is not stale.
func TestAHeartbeatThatIsNotVisibleCounts(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, holder, outside := open(t, url), connect(t, url), connect(t, url)
	g := openSession(t, s, time.Hour, 0)
	held, permit := mustAcquire(t, s, inSession("held", g)), inSession("permits", g)
	permit.Locks[0].Mode, permit.Locks[0].Capacity = lock.Permit, 2
	permitted := mustAcquire(t, s, permit)
	exec(t, holder, "update paddock.sessions set expires_at = clock_timestamp() + interval '2 seconds'")
	exec(t, holder, "begin")
	tag, err := holder.Exec(t.Context(), `update paddock.sessions set expires_at = clock_timestamp() + interval '1 hour'
		where clock_timestamp() < expires_at`)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%v, %v: the machine was too slow to renew in time", tag, err)
	}
	until(t, "the session is over for others", func() bool {
		return number(t, outside, "select count(*) from paddock.sessions where expires_at < clock_timestamp()") == 1
	})
	calls := map[string]func() error{
		"an acquire": func() error { _, err := s.Acquire(t.Context(), inSession("a", g)); return err },
		"a verification": func() error {
			v, err := s.VerifyToken(t.Context(), lock.Verify{Name: "held", Token: held.Token})
			if err == nil && v.Status != lock.Current {
				err = fmt.Errorf("the token is %s", v.Status)
			}
			return err
		},
		"a fenced write": func() error {
			w := lock.FencedWrite{Key: "resource", Lock: "permits", Token: permitted.Token, Slot: permitted.Slot, Value: []byte("1")}
			_, err := s.WriteFenced(t.Context(), w)
			return err
		},
	}
	answered := make(chan error, len(calls))
	for what, call := range calls {
		go func() {
			err := call()
			if err != nil {
				err = fmt.Errorf("%s: %w", what, err)
			}
			answered <- err
		}()
	}
	until(t, "the calls wait or are answered", func() bool {
		return int64(len(answered))+number(t, outside, `select count(*) from pg_stat_activity where datname = current_database()
			and wait_event_type = 'Lock' and backend_type = 'client backend'`) >= int64(len(calls))
	})
	exec(t, holder, "commit")
	for range calls {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
}
