package store_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// lift removes the constraints, as if the rows were from before them.
func lift(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, table := range []string{"records", "parts", "sessions"} {
		exec(t, conn, fmt.Sprintf("alter table paddock.%s drop constraint %[1]s_can_be_read", table))
	}
}

// TestCountersRefuseImpossibleValues, which would stop every call of every replica.
func TestCountersRefuseImpossibleValues(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, conn := open(t, url), connect(t, url)
	mustAcquire(t, s, acquire("a"))
	for range 2 { // the first is in the row of the lock
		shared := acquire("b")
		shared.Locks[0].Mode = lock.Shared
		mustAcquire(t, s, shared)
	}
	openSession(t, s, time.Minute, 0)
	if _, err := s.DeclareTree(t.Context(), "root"); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "insert into paddock.replicas values (1, now(), 0, false)")
	for _, change := range []string{
		"records set token = 9007199254740992", "records set revision = 9223372036854775807",
		"records set last_event = 9223372036854775807", "records set ttl_ms = 9223372036854775807",
		"records set changed_at = 'infinity'", "records set acquired_at = 'infinity'", "records set expires_at = 'infinity'",
		"parts set token = 9223372036854775807", "parts set place = 9223372036854775807",
		"parts set expires_at = 'infinity'", "parts set ttl_ms = 9223372036854775807",
		"sessions set ttl_ms = 9223372036854775807", "sessions set grace_ms = 9223372036854775807", "sessions set expires_at = 'infinity'",
		"epochs set closed_until = 'infinity'", "epochs set longest_ms = 9223372036854775807", "epochs set policy = 0",
		"epochs set epoch = 9223372036854775807", "event_batches set id = 9223372036854775807", "event_batches set at = 'infinity'",
		"horizon set pruned = 9223372036854775807", "replicas set waiting = 2147483647", "replicas set alive_until = 'infinity'",
		"replicas set streams = -1", "replicas set started_at = 'infinity'", "replicas set beat_at = '-infinity'",
	} {
		_, err := conn.Exec(t.Context(), "update paddock."+change)
		if pg := new(pgconn.PgError); !errors.As(err, &pg) || pg.Code != "23514" && pg.Code != "23505" {
			t.Errorf("%s: %v", change, err)
		}
	}
	mustAcquire(t, s, acquire("c"))
}

// TestAnUnreadableRowCostsItsOwnLock: other locks in the same batch are decided, lists show them and name the bad one,
// and the log has it once.
func TestAnUnreadableRowCostsItsOwnLock(t *testing.T) {
	t.Parallel()
	changes := []struct {
		what, sql string
		hidden    bool // a reader sees nothing wrong
	}{
		{"the greatest token", "update paddock.records set token = 9007199254740991 where name = 'bad'", true},
		{"a token not granted", "update paddock.records set token = 1000000000 where name = 'bad'", true},
		{"a token below zero", "update paddock.records set token = -1 where name = 'bad'", false},
		{"a missing part", "update paddock.records set parts = 1 where name = 'bad'", true},
		{"an end before all", "update paddock.records set expires_at = '-infinity' where name = 'bad'", false},
		{"no end", "update paddock.records set expires_at = 'infinity' where name = 'bad'", false},
		{"a field of rest", `update paddock.records set rest = '{"grace":"soon"}' where name = 'bad'`, false},
		{"a rest of another kind", `update paddock.records set rest = '[1]' where name = 'bad'`, false},
		{"the last revision", "update paddock.records set revision = 9223372036854775807 where name = 'bad'", false},
		{"a part of rest", `update paddock.records set parts = 1 where name = 'bad';
			insert into paddock.parts select 0, 1, 2, false, 1, 1000, 0, 0, now(), now(), gen_random_uuid(), 'bad', 'h', '7'`, false},
	}
	url := pgtest.URL(t)
	conn, first := connect(t, url), open(t, url)
	nameOf := func(i int) string { return fmt.Sprint("bad-", i) }
	var items []lock.Command
	for i := range changes {
		items = append(items, lock.Renew{Locks: []string{nameOf(i)}, LeaseID: mustAcquire(t, first, acquire(nameOf(i))).ID, TTL: time.Minute})
	}
	const others = 20
	for i := range others {
		items = append(items, acquire(fmt.Sprint("good-", i)))
	}
	lift(t, conn)
	for i, c := range changes {
		exec(t, conn, strings.ReplaceAll(c.sql, "'bad'", "'"+nameOf(i)+"'"))
	}
	var logged proctest.Transcript
	s, err := store.Open(t.Context(), url, store.Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for i, r := range s.Batch(t.Context(), items) {
		if i >= len(changes) && r.Err != nil {
			t.Errorf("%v was refused: %v", items[i], r.Err)
		}
	}
	page, err := s.Locks(t.Context(), paddock.LockQuery{Limit: paddock.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the scan has counted all", func() bool { return s.Stats().Locks.All == int64(others+len(changes)) })
	shown := others
	for i, c := range changes {
		name := nameOf(i)
		_, err := s.Acquire(t.Context(), acquire(name))
		e := new(lock.Error)
		if !errors.As(err, &e) || e.Code != lock.ErrInternal || !strings.Contains(e.Detail, "name = '"+name+"'") || !strings.Contains(e.Detail, "Correct the row, or delete it") {
			t.Errorf("%s: the lock was refused with %v", c.what, err)
		}
		if n := logged.Count("name=" + name + " error="); n != 1 {
			t.Errorf("%s: logged %d times: %s", c.what, n, logged.String())
		}
		if c.hidden {
			shown++
			continue
		}
		if !slices.ContainsFunc(page.Unreadable, func(u paddock.Unreadable) bool { return u.Name == name }) {
			t.Errorf("%s: the list does not name it", c.what)
		}
		if _, err := s.Lock(t.Context(), name); !errors.Is(err, lock.ErrInternal) {
			t.Errorf("%s: reading the lock: %v", c.what, err)
		}
	}
	if len(page.Items) != shown || len(page.Unreadable) != others+len(changes)-shown {
		t.Errorf("the list has %d locks and %+v", len(page.Items), page.Unreadable)
	}
}

// TestAnUnreadableSessionCostsItsOwn locks and nothing else.
func TestAnUnreadableSessionCostsItsOwn(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, conn := open(t, url), connect(t, url)
	bad, good := openSession(t, s, time.Minute, 0), openSession(t, s, time.Minute, 0)
	mustAcquire(t, s, inSession("of-bad", bad))
	lift(t, conn)
	exec(t, conn, "update paddock.sessions set expires_at = 'infinity' where ref = $1", int64(bad.ID.Ref()))
	mustAcquire(t, s, inSession("of-good", good))
	page, err := s.Sessions(t.Context(), paddock.SessionQuery{})
	if err != nil || len(page.Items) != 1 || len(page.Unreadable) != 1 || page.Unreadable[0].Name != bad.ID.Ref().String() {
		t.Errorf("the list is %+v, %+v, %v", page.Items, page.Unreadable, err)
	}
	_, err = s.RenewSession(t.Context(), lock.RenewSession{ID: bad.ID})
	if e := new(lock.Error); !errors.As(err, &e) || !strings.Contains(e.Detail, "paddock.sessions") {
		t.Errorf("the heartbeat was answered with %v", err)
	}
	locks, err := s.Locks(t.Context(), paddock.LockQuery{})
	if err != nil || len(locks.Items) != 1 || len(locks.Unreadable) != 1 || locks.Unreadable[0].Name != "of-bad" {
		t.Errorf("the locks are %+v, %+v, %v", locks.Items, locks.Unreadable, err)
	}
	if _, err := s.RenewSession(t.Context(), lock.RenewSession{ID: good.ID}); err != nil {
		t.Error(err)
	}
}

// TestAnUnreadableEpochIsNamed: calls are refused with the row and the remedy, and not retried without end. The remedy
// helps.
func TestAnUnreadableEpochIsNamed(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"infinity", "-infinity"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			s, conn := open(t, url), connect(t, url)
			g := mustAcquire(t, s, acquire("held"))
			exec(t, conn, "alter table paddock.epochs drop constraint epochs_can_be_read")
			exec(t, conn, "update paddock.epochs set closed_until = '"+value+"'")
			exec(t, conn, "alter table paddock.epochs add constraint epochs_can_be_read check (isfinite(closed_until)) not valid")
			names := func(what string, err error) {
				if e := new(lock.Error); errors.As(err, &e) {
					err = errors.New(e.Detail)
				}
				if err == nil || !strings.Contains(err.Error(), "epochs (epoch = 1)") || !strings.Contains(err.Error(), "closed_until") {
					t.Errorf("%s: %v", what, err)
				}
			}
			_, err := s.Acquire(t.Context(), acquire("another"))
			names("acquire", err)
			if err == nil || !strings.Contains(fmt.Sprint(err), "paddock epoch open") {
				t.Errorf("the remedy is missing: %v", err)
			}
			names("release", s.Release(t.Context(), lock.Release{Locks: []string{"held"}, LeaseID: g.ID}))
			names("ready", s.Ready(t.Context()))
			_, _, err = store.Epochs(t.Context(), url, "")
			names("the list of epochs", err)
			_, err = store.Open(t.Context(), url, store.Options{})
			names("another replica", err)
			if opened, err := store.OpenEpoch(t.Context(), url, "", "by hand"); err != nil || !opened {
				t.Errorf("opened %t, %v", opened, err)
			}
			mustRelease(t, s, g)
			mustAcquire(t, s, acquire("another"))
		})
	}
}
