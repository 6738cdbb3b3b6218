package store

import (
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// countSwaps has the table say by which statement each of its rows was written.
const countSwaps = `
create table public.swaps (name text, swapped boolean);
create function public.note_swap() returns trigger language plpgsql as
	$$ begin insert into public.swaps values (new.name, current_query() like '%paddock.swap[]%'); return null; end $$;
create trigger note_swap after update on paddock.locks for each row execute function public.note_swap();`

// A site is a database of which somebody outside sees how it is written to.
type site struct {
	*testing.T
	url     string
	outside *pgx.Conn
}

func newSite(t *testing.T) *site {
	t.Helper()
	x := &site{T: t, url: pgtest.URL(t)}
	conn, err := pgx.Connect(t.Context(), x.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	x.outside = conn
	x.exec(countSwaps)
	return x
}

func (x *site) exec(sql string, args ...any) {
	x.Helper()
	if _, err := x.outside.Exec(x.Context(), sql, args...); err != nil {
		x.Fatalf("%s: %v", sql, err)
	}
}

// store returns one that does nothing unasked.
func (x *site) store() *Store {
	x.Helper()
	o, err := Options{Log: slog.New(slog.NewTextHandler(x.Output(), nil))}.resolve()
	if err != nil {
		x.Fatal(err)
	}
	s, err := connect(x.Context(), x.url, o)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(s.Close)
	return s
}

// swaps returns how often the lock was written from memory, and how often otherwise.
func (x *site) swaps(name string) (swapped, not int) {
	x.Helper()
	err := x.outside.QueryRow(x.Context(), "select count(*) filter (where swapped), count(*) filter (where not swapped) from public.swaps where name like $1", name).
		Scan(&swapped, &not)
	if err != nil {
		x.Fatal(err)
	}
	return swapped, not
}

// wrote fails unless the lock was written so often from memory, and so often otherwise.
func (x *site) wrote(name string, swapped, not int) {
	x.Helper()
	if a, b := x.swaps(name); a != swapped || b != not {
		x.Errorf("%s was written %d times from memory and %d times otherwise, want %d and %d", name, a, b, swapped, not)
	}
}

// until asks again until the query gives true.
func (x *site) until(sql string) {
	x.Helper()
	for over := time.Now().Add(time.Minute); ; {
		var holds bool
		if err := x.outside.QueryRow(x.Context(), sql).Scan(&holds); err != nil {
			x.Fatalf("%s: %v", sql, err)
		}
		if holds {
			return
		}
		if time.Now().After(over) {
			x.Fatalf("waited in vain for %s", sql)
		}
	}
}

const somebodyWaits = `select exists (select from pg_stat_activity
	where datname = current_database() and wait_event_type = 'Lock')`

func wants(name string) lock.Acquire {
	return lock.Acquire{Name: name, LeaseID: lock.LeaseID(uuid.New()), Holder: "h", TTL: time.Minute}
}

func (x *site) acquires(s *Store, a lock.Acquire) lock.Grant {
	x.Helper()
	g, err := s.Acquire(x.Context(), a)
	if err != nil {
		x.Fatalf("acquire %s: %v", a.Name, err)
	}
	return g
}

func (x *site) renews(s *Store, g lock.Grant) lock.Grant {
	x.Helper()
	g, err := s.Renew(x.Context(), lock.Renew{Name: g.Name, LeaseID: g.ID})
	if err != nil {
		x.Fatalf("renew %s: %v", g.Name, err)
	}
	return g
}

func (x *site) releases(s *Store, g lock.Grant) {
	x.Helper()
	if err := s.Release(x.Context(), lock.Release{Name: g.Name, LeaseID: g.ID}); err != nil {
		x.Fatalf("release %s: %v", g.Name, err)
	}
}

// idle returns all connections on which the store decides, once it has given them back.
func (x *site) idle(s *Store) []*pgxpool.Conn {
	for s.deciding.Stat().AcquiredConns() > 0 {
		runtime.Gosched()
	}
	return s.deciding.AcquireAllIdle(x.Context())
}

// recents has f see what each connection of the store remembers.
func (x *site) recents(s *Store, f func(*pgxpool.Conn, *recents)) {
	x.Helper()
	for _, conn := range x.idle(s) {
		if r := recentsOf(conn.Conn()); r != nil {
			f(conn, r)
		}
		conn.Release()
	}
}

func TestTheCommonCycleIsFromMemory(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	var last lock.Token
	for range 3 {
		a := wants("a")
		a.Metadata = []byte(`{"a": 1}`)
		g := x.acquires(s, a)
		if r := x.renews(s, g); r.Token != g.Token || r.ExpiresAt.Before(g.ExpiresAt) {
			t.Errorf("renewed to %+v, from %+v", r.Lease, g.Lease)
		}
		x.releases(s, g)
		if g.Token <= last {
			t.Errorf("token %d after %d", g.Token, last)
		}
		last = g.Token
	}
	x.wrote("a", 8, 1)
}

// TestALockChangedElsewhereIsNotOverwritten: the swap finds it changed, and the call is
// decided on what is there.
func TestALockChangedElsewhereIsNotOverwritten(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s, other := x.store(), x.store()
	x.releases(s, x.acquires(s, wants("a")))
	held := x.acquires(other, wants("a"))
	if _, err := s.Acquire(t.Context(), wants("a")); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("acquiring what another store has granted gave %v", err)
	}
	mine := x.acquires(s, wants("b"))
	other.mustRevoke(t, mine)
	x.acquires(other, wants("b"))
	e := new(lock.Error)
	if _, err := s.Renew(t.Context(), lock.Renew{Name: "b", LeaseID: mine.ID}); !errors.As(err, &e) || e.Ended != lock.Revoked {
		t.Errorf("renewing what was revoked gave %v", err)
	}
	if l, err := s.Lock(t.Context(), "a"); err != nil || l.Token != held.Token || l.Revision != 3 {
		t.Errorf("the lock is %+v, %v", l, err)
	}
	x.wrote("a", 1, 2)
}

func (s *Store) mustRevoke(t *testing.T, g lock.Grant) {
	t.Helper()
	if _, err := s.Revoke(t.Context(), lock.Revoke{Name: g.Name, Token: g.Token, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
}

// TestALockMadeAnewIsNotTheOneThatIsRemembered although nothing tells them apart but who
// wrote them.
func TestALockMadeAnewIsNotTheOneThatIsRemembered(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	first := x.acquires(s, wants("a"))
	x.releases(s, first)
	x.exec("create table public.kept as select * from paddock.locks")
	x.exec("delete from paddock.locks")
	x.exec("insert into paddock.locks select * from public.kept")
	if g := x.acquires(s, wants("a")); g.Token <= first.Token {
		t.Errorf("token %d after %d", g.Token, first.Token)
	}
	x.wrote("a", 1, 2)
	x.exec("vacuum (full, freeze) paddock.locks")
	x.releases(s, x.acquires(s, wants("b")))
	x.wrote("b", 1, 1)
}

func TestALeaseThatHasEndedIsNotGrantedAgainFromMemory(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	a := wants("a")
	x.releases(s, x.acquires(s, a))
	x.releases(s, x.acquires(s, wants("a")))
	e := new(lock.Error)
	if _, err := s.Acquire(t.Context(), a); !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Released {
		t.Errorf("the lease that was released gave %v", err)
	}
	x.wrote("a", 3, 1)
	if g := x.acquires(s, lock.Acquire{Name: "a", Holder: "h"}); g.Token == 0 { // with a lease_id that the service draws
		t.Error("no token")
	}
	x.wrote("a", 4, 1)
}
