package store

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// forgets has the connections of the store forget the lock.
func (x *site) forgets(s *Store, name string) {
	x.recents(s, func(_ *pgxpool.Conn, r *recents) { r.drop(name) })
}

// looks has a connection of the store look for the lock, and passes it what is remembered then.
func (x *site) looks(s *Store, name string, f func(recent, bool)) {
	x.Helper()
	looked := false
	x.recents(s, func(conn *pgxpool.Conn, r *recents) {
		if looked {
			return
		}
		a := acquireCall{Acquire: lock.Acquire{Name: name, Mode: lock.Exclusive}}
		if err := s.lookAhead(x.Context(), conn.Conn(), []*call{batch.NewCall[lock.Command, outcome](a)}); err != nil {
			x.Error(err)
		}
		f(r.get(name))
		looked = true
	})
	if !looked {
		x.Fatal("no connection remembers anything")
	}
}

func TestALockThatIsNotRememberedIsLookedAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left         func(*site, *Store, lock.Grant)
		want         error
		swapped, not int
	}{
		"it is free": {func(x *site, s *Store, g lock.Grant) { x.releases(s, g) }, nil, 2, 0},
		"it is held": {func(*site, *Store, lock.Grant) {}, lock.ErrHeld, 0, 0},
		"its lease is over": {func(x *site, _ *Store, _ lock.Grant) {
			x.exec("update paddock.locks set expires_at = clock_timestamp() - interval '1 s'")
			x.exec("truncate public.swaps")
		}, nil, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			s := x.store()
			g := x.acquires(s, wants("a"))
			x.exec("truncate public.swaps")
			c.left(x, s, g)
			x.forgets(s, "a")
			if next, err := s.Acquire(t.Context(), wants("a")); !errors.Is(err, c.want) || err == nil && next.Token <= g.Token {
				t.Errorf("token %d after %d, %v", next.Token, g.Token, err)
			}
			x.wrote("a", c.swapped, c.not)
		})
	}
}

// TestWhatIsBesideAnAnchorIsNotLookedAt: what is remembered would be half of it.
func TestWhatIsBesideAnAnchorIsNotLookedAt(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s, other := x.store(), x.store()
	for name, mode := range map[string]lock.Mode{"shared": lock.Shared, "permits": lock.Permit, "waited:for": lock.Exclusive, "alone": lock.Exclusive} {
		a := wants(name)
		if a.Mode = mode; mode == lock.Permit {
			a.Capacity = 2
		}
		x.acquires(other, a)
	}
	s.seen.note(slices.Values([]string{"shared", "permits", "waited:for", "alone", "never:seen"}))
	x.acquires(s, wants("b")) // remembers from now on
	a := wants("waited:for")
	a.Wait = lock.MaxWait
	go other.Acquire(t.Context(), a) //nolint:errcheck // it is never granted
	x.until("select queued = 1 from paddock.locks where name = 'waited:for'")
	for name, want := range map[string]bool{"shared": false, "permits": false, "waited:for": false, "alone": true, "never:seen": false} {
		x.looks(s, name, func(l recent, known bool) {
			if known != want {
				t.Errorf("%s: remembered is %t, as %+v", name, known, l)
			}
			if is, version := x.read("alone"); known && (l.version != version || !reflect.DeepEqual(l.state, is)) {
				t.Errorf("%s is remembered as %+v, and is %+v", name, l, is)
			}
		})
	}
}

// TestWhatIsChangedAfterALookIsNotSwapped: nothing is locked between a look and its swap.
func TestWhatIsChangedAfterALookIsNotSwapped(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s, other := x.store(), x.store()
	first := x.acquires(s, wants("a"))
	x.releases(s, first)
	x.forgets(s, "a")
	x.looks(s, "a", func(l recent, known bool) {
		if !known || l.state.Token != first.Token {
			t.Errorf("what was looked for is remembered: %t, as %+v", known, l)
		}
	})
	held := x.acquires(other, wants("a"))
	if _, err := s.Acquire(t.Context(), wants("a")); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("acquiring what another store has granted since gave %v", err)
	}
	if l, err := s.Lock(t.Context(), "a"); err != nil || l.Token != held.Token {
		t.Errorf("the lock is %+v, %v", l, err)
	}
}

func TestALookThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	first := x.acquires(s, wants("a"))
	x.releases(s, first)
	x.forgets(s, "a")
	x.exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	if g := x.acquires(s, wants("a")); g.Token <= first.Token {
		t.Errorf("token %d after %d", g.Token, first.Token)
	}
}

// TestASwapThatCannotBePreparedWasNotSent: the statement of renewals is prepared for the first of
// them, here on a connection that ends meanwhile.
func TestASwapThatCannotBePreparedWasNotSent(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	g := x.acquires(s, wants("a"))
	x.patient(s)
	door, err := pgx.Connect(t.Context(), x.url) // another session: what it knows of others is as of its begin
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = door.Close(t.Context()) })
	if _, err := door.Exec(t.Context(), "begin; lock table paddock.locks in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	renewed := x.renewal(s, g)
	x.until(`select coalesce(bool_or(pg_terminate_backend(pid)), false) from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock' and query like '%unnest($1::paddock.swap%'`)
	if _, err := door.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Errorf("the renewal failed: %v", err)
	}
}

// TestNamesNeverSeenAreLookedForWhereThatHelps: most that are new would be looked for in vain.
func TestNamesNeverSeenAreLookedForWhereThatHelps(t *testing.T) {
	t.Parallel()
	var s seen
	s.note(slices.Values([]string{"a"}))
	likely := func(times int, names, want string) {
		t.Helper()
		for range times {
			if got, unseen := s.likely([]string{"a", "b", "c"}); fmt.Sprint(got) != names || fmt.Sprint(unseen) != want {
				t.Fatalf("looked for is %v, %v of them unseen; want %s, %s", got, unseen, names, want)
			}
		}
	}
	learn := func(times int, there ...string) {
		for range times {
			found := map[string]recent{"a": {}}
			for _, name := range there {
				found[name] = recent{}
			}
			s.learn([]string{"b", "c"}, found)
		}
	}
	likely(seldom-1, "[a]", "[]")
	likely(1, "[a b c]", "[b c]")
	learn(1)
	likely(seldom-1, "[a]", "[]")
	likely(1, "[a b c]", "[b c]")
	learn(3, "b", "c")
	likely(2*seldom, "[a b c]", "[b c]")
	learn(1, "b")
	learn(1, "b", "c")
	s.learn(nil, nil) // which tells nothing
	likely(1, "[a b c]", "[b c]")
	learn(2)
	likely(1, "[a]", "[]")
}

// TestLocksAreLookedForOnce, in order, and only those that somebody wants for himself and that
// can be remembered.
func TestLocksAreLookedForOnce(t *testing.T) {
	t.Parallel()
	wants := func(name string) lock.Command {
		return acquireCall{Acquire: lock.Acquire{Name: name, Mode: lock.Exclusive}}
	}
	much := acquireCall{Acquire: lock.Acquire{
		Name: "much", Mode: lock.Exclusive, Metadata: make([]byte, maxRecentMetadata+1),
	}}
	for name, c := range map[string]struct {
		calls []lock.Command
		want  string
	}{
		"nothing":                      {nil, "[]"},
		"once, in order":               {[]lock.Command{wants("b"), wants("a"), wants("b")}, "[a b]"},
		"one that is remembered":       {[]lock.Command{wants("known"), lock.Release{Name: "known"}}, "[]"},
		"half can be done":             {[]lock.Command{wants("a"), lock.Renew{Name: "known"}, lock.Renew{Name: "other"}, lock.Release{Name: "other"}}, "[a]"},
		"less than half":               {[]lock.Command{wants("a"), lock.Renew{Name: "other"}, lock.Release{Name: "other"}}, "[]"},
		"not for oneself":              {[]lock.Command{acquireCall{Acquire: lock.Acquire{Name: "a", Mode: lock.Shared}}}, "[]"},
		"with more than is remembered": {[]lock.Command{much, wants("a")}, "[a]"},
	} {
		r := &recents{young: map[string]recent{"known": {}}}
		var calls []*call
		for _, cmd := range c.calls {
			calls = append(calls, batch.NewCall[lock.Command, outcome](cmd))
		}
		if names := r.wantedAnew(calls); fmt.Sprint(names) != c.want {
			t.Errorf("%s: looked for are %v, want %s", name, names, c.want)
		}
	}
}

// TestALeaseThatIsOverIsNotSwapped: the statement would find that nothing holds any more.
func TestALeaseThatIsOverIsNotSwapped(t *testing.T) {
	t.Parallel()
	now := time.Now()
	id := wants("a").LeaseID
	calls := []*call{batch.NewCall[lock.Command, outcome](lock.Release{Name: "a", LeaseID: id})}
	for over, swaps := range map[time.Duration]bool{time.Hour: true, 0: false, -time.Hour: false} {
		l := lock.Lease{ID: id, Name: "a", Mode: lock.Exclusive, Token: 1, TTL: time.Hour, ExpiresAt: now.Truncate(time.Microsecond).Add(over)}
		r := &recents{clock: reading{shown: now, before: now}, young: map[string]recent{
			"a": {state: lock.Record{Name: "a", Token: 1, Leases: []lock.Lease{l}}},
		}}
		if got := newSwap(r, here, calls, now) != nil; got != swaps {
			t.Errorf("one whose lease is over in %v is swapped: %t", over, got)
		}
	}
}
