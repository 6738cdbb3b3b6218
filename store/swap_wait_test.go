package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/lock"
)

// holding has somebody outside lock the lock's row, without changing it, until the function
// that it returns is called.
func (x *site) holding(name string) (free func()) {
	x.Helper()
	x.exec("begin")
	x.exec("select from paddock.locks where name = $1 for no key update", name)
	return func() { x.Helper(); x.exec("commit") }
}

// patient has all idle connections of the store wait for rows without end, so that it is the
// swap that is through when the row is free.
func (x *site) patient(s *Store) {
	x.Helper()
	for _, conn := range x.idle(s) {
		if _, err := conn.Exec(x.Context(), "set lock_timeout = 0"); err != nil {
			x.Fatal(err)
		}
		conn.Release()
	}
}

// renewal renews in the background.
func (x *site) renewal(s *Store, g lock.Grant) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Renew(x.Context(), lock.Renew{Name: g.Name, LeaseID: g.ID})
		done <- err
	}()
	return done
}

// TestASwapThatWaitsPastTheEndIsRefused: its decision was right when the statement began, and
// PostgreSQL looks at the row no more once it has waited for one that was only locked.
func TestASwapThatWaitsPastTheEndIsRefused(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	a := wants("a")
	a.TTL = time.Second
	x.releases(s, x.acquires(s, a))
	b := wants("a")
	b.TTL, b.Grace = time.Second, 200*time.Millisecond
	g := x.acquires(s, b)
	x.patient(s)
	free := x.holding("a")
	renewed := x.renewal(s, g)
	x.until(somebodyWaits)
	x.until("select expires_at + interval '0.2 s' <= clock_timestamp() from paddock.locks where name = 'a'")
	free()
	e := new(lock.Error)
	if err := <-renewed; !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Expired || e.EndedAt.Before(g.ExpiresAt.Add(b.Grace)) {
		t.Errorf("renewing gave %v, want lease_lost, expired", err)
	}
	x.wrote("a", 1, 3) // two grants, each of a longer lease than any before, and the expiry
	remembers := 0
	x.recents(s, func(_ *pgxpool.Conn, r *recents) { remembers += recentsHave(r) })
	if remembers == 0 {
		t.Error("nothing is remembered any more, though only a decision was late")
	}
}

func TestASwapThatWaitsForLessGoesOn(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	g := x.acquires(s, wants("a"))
	x.patient(s)
	free := x.holding("a")
	renewed := x.renewal(s, g)
	x.until(somebodyWaits)
	free()
	if err := <-renewed; err != nil {
		t.Error(err)
	}
	x.wrote("a", 1, 1)
}

// TestASwapThatWaitsForAChangeLeavesItAlone, even where the database's default is an isolation
// that would fail it.
func TestASwapThatWaitsForAChangeLeavesItAlone(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			x.exec(fmt.Sprintf("do $$ begin execute format('alter database %%I set default_transaction_isolation = ''%s''', current_database()); end $$", isolation))
			s := x.store()
			g := x.acquires(s, wants("a"))
			x.patient(s)
			x.exec("begin isolation level read committed")
			x.exec("update paddock.locks set holder = 'another' where name = 'a'")
			renewed := x.renewal(s, g)
			x.until(somebodyWaits)
			x.exec("commit")
			if err := <-renewed; err != nil {
				t.Error(err)
			}
			x.wrote("a", 0, 3) // the last by a transaction that has looked
			if l, err := s.Lock(t.Context(), "a"); err != nil || l.Leases[0].Holder != "another" {
				t.Errorf("what was changed is %+v, %v", l, err)
			}
			x.renews(s, g)
			x.wrote("a", 1, 3)
		})
	}
}

// TestADecisionThatDoesNotHoldLeavesTheOthersAlone: a lease that has ended by the database's clock is not
// written, and the rest of the statement is. It tries again where a busy machine was in its way.
func TestADecisionThatDoesNotHoldLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(lock.Grant) lock.Command{
		"renewals": func(g lock.Grant) lock.Command { return lock.Renew{Name: g.Name, LeaseID: g.ID} },
		"releases": func(g lock.Grant) lock.Command { return lock.Release{Name: g.Name, LeaseID: g.ID} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			s := x.store()
			for try := range 20 {
				ended, other := x.acquires(s, wants(fmt.Sprint("ended", try))), x.acquires(s, wants(fmt.Sprint("other", try)))
				x.recents(s, func(_ *pgxpool.Conn, r *recents) { // takes the lease to end now, by a clock that is behind
					r.clock.shown = r.clock.shown.Add(-maxLag / 2)
					if l, ok := r.get(ended.Name); ok {
						l.state.Leases[0].ExpiresAt = r.clock.at(time.Now()).Add(maxLag / 2)
					}
				})
				for _, result := range s.Batch(t.Context(), []lock.Command{do(ended), do(other)}) {
					if result.Err != nil {
						t.Error(result.Err)
					}
				}
				x.wrote(ended.Name, 0, 2)
				if swapped, _ := x.swaps(other.Name); swapped == 1 {
					return
				}
			}
			t.Error("one decision that does not hold has the others be made again")
		})
	}
}

// TestAGrantThatTookLongerThanItsLeaseIsMadeAgain: the lease would be over already.
func TestAGrantThatTookLongerThanItsLeaseIsMadeAgain(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	x.releases(s, x.acquires(s, wants("a")))
	x.patient(s)
	free := x.holding("a")
	a := wants("a")
	a.TTL = lock.MinTTL
	granted := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), a)
		granted <- err
	}()
	x.until(somebodyWaits)
	x.until("select clock_timestamp() > now() + interval '0.5 s'") // since before it waited
	free()
	if err := <-granted; err != nil {
		t.Error(err)
	}
	x.wrote("a", 1, 2)
}

// TestAClockThatIsOffIsNotBelieved: what is remembered of the database's clock may be wrong
// when that is set, or when this machine has slept.
func TestAClockThatIsOffIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{
		"the database's clock was set back": time.Hour, "by a little": 10 * time.Second,
		"the machine has slept": -time.Hour, "for a moment": -maxLag - 100*time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			s := x.store()
			g := x.acquires(s, wants("a"))
			x.recents(s, func(_ *pgxpool.Conn, r *recents) { r.clock.shown = r.clock.shown.Add(off) })
			r := x.renews(s, g)
			if moved := r.ExpiresAt.Sub(g.ExpiresAt); moved < 0 || moved > time.Minute/2 {
				t.Errorf("the renewal moved the end by %v", moved)
			}
			x.wrote("a", 0, 2)
			x.renews(s, g)
			x.wrote("a", 1, 2)
		})
	}
}

// TestMemoryOutlivesWhatPasses: a full disk, say, costs a try, and not what is remembered.
func TestMemoryOutlivesWhatPasses(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	g := x.acquires(s, wants("a"))
	x.exec(`create function public.full_disk() returns trigger language plpgsql as $$ begin
		if current_query() like '%paddock.swap[]%' then raise 'no room' using errcode = '53100'; end if;
		return new; end $$;
		create trigger full_disk before update on paddock.locks for each row execute function public.full_disk()`)
	x.renews(s, g)
	x.wrote("a", 0, 2)
	x.exec("drop trigger full_disk on paddock.locks")
	x.renews(s, g)
	x.wrote("a", 1, 2)
}
