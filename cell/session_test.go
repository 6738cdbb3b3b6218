package cell_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func TestASessionIsUsedInSeveralCells(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.mustOpen()
	for n := range 3 {
		f.mustAcquire(inSession(g, in(n)))
	}
	info, err := f.Session(t.Context(), g.ID.Ref())
	if err != nil || info.Leases != 3 || len(info.Locks) != 3 || info.Cells != 7 {
		t.Fatalf("the session is %+v, %v", info, err)
	}
	page, err := f.Sessions(t.Context(), paddock.SessionQuery{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Leases != 3 {
		t.Errorf("the list is %+v, %v", page, err)
	}
	if err := f.CloseSession(t.Context(), lock.CloseSession{ID: g.ID}); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		f.mustAcquire(acquireOf(in(n)))
	}
	if err := f.renew(g); !errors.Is(err, lock.ErrSessionLost) {
		t.Errorf("a renewal of the closed session has the error %v", err)
	}
	if err := f.CloseSession(t.Context(), lock.CloseSession{ID: g.ID}); err != nil {
		t.Errorf("closing it again: %v", err)
	}
}

func TestAClosedSessionIsNotSaidToBeAsItWas(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.mustOpen()
	for n := range 3 {
		f.mustAcquire(inSession(g, in(n)))
	}
	f.cells[1].dies.Store(true)
	if err := f.CloseSession(t.Context(), lock.CloseSession{ID: g.ID}); !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("a close that did not reach one cell has the error %v", err)
	}
	f.mustAcquire(acquireOf(in(0)))
	f.cells[1].dies.Store(false)
	f.cells[1].away.Store(false)
	if err := f.CloseSession(t.Context(), lock.CloseSession{ID: g.ID}); err != nil {
		t.Errorf("closing it again: %v", err)
	}
	f.mustAcquire(acquireOf(in(1)))
}

func TestASessionOutlivesACellThatDoesNotUseIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		g := f.mustOpen()
		home := f.homeOf(g)
		user, idle := (home+1)%3, (home+2)%3
		f.mustAcquire(inSession(g, in(user)))
		f.cells[home].away.Store(true)
		f.cells[idle].away.Store(true)
		for range 10 { // ten minutes, in which the row at its home expires
			time.Sleep(50 * time.Second)
			if err := f.renew(g); err != nil {
				t.Fatal(err)
			}
		}
		f.cells[home].away.Store(false)
		f.cells[idle].away.Store(false)
		other := *f
		other.Service = f.again()
		time.Sleep(50 * time.Second)
		if err := other.renew(g); err != nil { // by a replica that knows nothing of the session
			t.Fatal(err)
		}
		other.mustAcquire(inSession(g, in(idle)))
		if info, err := other.Session(t.Context(), g.ID.Ref()); err != nil || info.Leases != 2 || info.Ended != 0 {
			t.Errorf("the session is %+v, %v", info, err)
		}
	})
}

func TestASessionIsNotRenewedWithoutACellThatUsesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		g := f.mustOpen()
		home := f.homeOf(g)
		for n := range 3 {
			f.mustAcquire(inSession(g, in(n)))
		}
		for n := range 3 {
			for _, r := range []paddock.Service{f.Service, f.again()} {
				f.cells[n].away.Store(true)
				_, err := r.RenewSession(t.Context(), lock.RenewSession{ID: g.ID})
				if !errors.Is(err, lock.ErrUnavailable) {
					t.Errorf("without cell %d of the session at home in %d the renewal has the error %v", n, home, err)
				}
				f.cells[n].away.Store(false)
			}
		}
		f.cells[1].away.Store(true)
		for range 2 {
			time.Sleep(50 * time.Second)
			if err := f.renew(g); !errors.Is(err, lock.ErrUnavailable) {
				t.Errorf("the renewal has the error %v", err)
			}
		}
		f.cells[1].away.Store(false)
		if err := f.renew(g); !errors.Is(err, lock.ErrSessionLost) {
			t.Errorf("after the end in one cell the renewal has the error %v", err)
		}
	})
}

func TestTheEndOfASessionIsTheEarliest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		g := f.mustOpen()
		f.mustAcquire(inSession(g, in(0)))
		time.Sleep(30 * time.Second)
		inOther := inSession(g, in(1)) // its row there has the whole TTL
		for what, call := range map[string]func(paddock.Service) (lock.Grant, error){
			"acquired": func(s paddock.Service) (lock.Grant, error) { return s.Acquire(t.Context(), inOther) },
			"in a batch": func(s paddock.Service) (lock.Grant, error) {
				r := s.Batch(t.Context(), []lock.Command{inOther})[0]
				return r.Grant, r.Err
			},
			"not renewed": func(s paddock.Service) (lock.Grant, error) {
				return s.Renew(t.Context(), lock.Renew{Locks: inOther.Names(), LeaseID: inOther.LeaseID})
			},
		} {
			f.mustAcquire(inOther)
			for _, router := range []paddock.Service{f, f.again()} {
				l, err := call(router)
				if err != nil || time.Until(l.Until).Round(time.Second) != 30*time.Second || l.ExpiresAt.Sub(l.AcquiredAt).Round(time.Second) != 30*time.Second ||
					!l.Leases[0].ExpiresAt.Equal(l.ExpiresAt) {
					t.Errorf("a lease in the other cell, %s, ends at %v, in %v: %v", what, l.ExpiresAt, time.Until(l.Until), err)
				}
			}
		}
		again, err := f.OpenSession(t.Context(), lock.OpenSession{ID: g.ID, Holder: "worker", TTL: time.Minute})
		if err != nil || !again.Replayed || time.Until(again.Until).Round(time.Second) != 30*time.Second {
			t.Errorf("opened again it ends in %v: %v", time.Until(again.Until), err)
		}
		renewed, err := f.RenewSession(t.Context(), lock.RenewSession{ID: g.ID})
		if err != nil || time.Until(renewed.Until).Round(time.Second) != time.Minute {
			t.Errorf("renewed it ends in %v: %v", time.Until(renewed.Until), err)
		}
		page, err := f.Events(t.Context(), paddock.EventQuery{Sessions: []lock.SessionRef{g.ID.Ref()}, Cursor: paddock.CursorNow, Wait: time.Second})
		if err != nil || len(page.EndedSessions) != 0 {
			t.Errorf("its end is told: %+v, %v", page, err)
		}
		time.Sleep(2 * time.Minute)
		page, err = f.Events(t.Context(), paddock.EventQuery{Sessions: []lock.SessionRef{g.ID.Ref()}, Cursor: page.Next})
		if err != nil || len(page.EndedSessions) != 1 {
			t.Errorf("its end is not told: %+v, %v", page, err)
		}
	})
}

func TestASessionIsOpenedWhileItsHomeIsAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for home := range 3 {
		f.cells[home].away.Store(true)
		for range 9 {
			g := f.mustOpen()
			f.mustAcquire(inSession(g, in((home+1)%3)+g.ID.Ref().String()))
			if err := f.renew(g); err != nil {
				t.Fatal(err)
			}
		}
		f.cells[home].away.Store(false)
	}
}
