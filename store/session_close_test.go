package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestNothingIsGrantedInASessionAfterItsEnd: an acquire that was decided while the session was open, and whose swap
// waits for a row, meets the end of the session, which another replica has answered.
func TestNothingIsGrantedInASessionAfterItsEnd(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*store.Store, lock.SessionGrant) error{
		"closed": func(s *store.Store, g lock.SessionGrant) error {
			return s.CloseSession(t.Context(), lock.CloseSession{ID: g.ID})
		},
		"revoked": func(s *store.Store, g lock.SessionGrant) error {
			_, err := s.RevokeSession(t.Context(), lock.RevokeSession{Ref: g.ID.Ref(), Reason: "test"})
			return err
		},
	} {
		for what, ask := range map[string]func(lock.Acquire) lock.Acquire{
			"a lock": func(a lock.Acquire) lock.Acquire { return a },
			"a set": func(a lock.Acquire) lock.Acquire {
				a.Locks = []lock.Member{{Name: "a"}, {Name: "n"}}
				return a
			},
			"a place": func(a lock.Acquire) lock.Acquire {
				a.Locks, a.Wait = lock.One("held"), time.Millisecond
				a.KeepPlace = true
				return a
			},
		} {
			t.Run(how+", "+what, func(t *testing.T) {
				t.Parallel()
				url := pgtest.URL(t)
				acquires, ends, outside := open(t, url), open(t, url), connect(t, url)
				mustAcquire(t, acquires, acquire("held"))
				mustRelease(t, acquires, mustAcquire(t, acquires, acquire("n")))
				g := openSession(t, acquires, time.Hour, 0)
				a := ask(inSession("n", g))
				tx, err := outside.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(t.Context(), "select from paddock.records where name in ('n', 'held') for update"); err != nil {
					t.Fatal(err)
				}
				refused := make(chan error, 1)
				go func() {
					_, err := acquires.Acquire(t.Context(), a)
					refused <- err
				}()
				until(t, "the swap waits for the row", func() bool {
					return number(t, outside, "select count(*) from pg_locks where not granted and database = (select oid from pg_database where datname = current_database()) or not granted and locktype = 'transactionid'") > 0
				})
				if err := end(ends, g); err != nil {
					t.Fatal(err)
				}
				if err := tx.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-refused; !errors.Is(err, lock.ErrSessionLost) {
					t.Errorf("the acquire: %v", err)
				}
				wantNothingOf(t, ends, g, "n", "a", "held")
			})
		}
	}
}

// wantNothingOf expects that the session has no lease and no place of the locks, of which one replica is asked.
func wantNothingOf(t *testing.T, s *store.Store, g lock.SessionGrant, names ...string) {
	t.Helper()
	if info, err := s.Session(t.Context(), g.ID.Ref()); err != nil || info.Leases > 0 || info.Places > 0 {
		t.Errorf("the session that has ended: %+v, %v", info, err)
	}
	for _, name := range names {
		l, err := s.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, held := range l.Leases {
			if held.Session == g.ID.Ref() {
				t.Errorf("%s is held in the session that has ended: %+v", name, held)
			}
		}
	}
}
