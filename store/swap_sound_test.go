package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// TestWhatIsRememberedIsWhatTheTableSays compares the cached state of each lock that no other transaction has written
// since with what a transaction reads, after each of several phases of random calls. One lock is always cached.
func TestWhatIsRememberedIsWhatTheTableSays(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	stores := []*Store{x.store(), x.store()}
	var wanderers []*wanderer
	for i := range 4 {
		wanderers = append(wanderers, &wanderer{site: x, stores: stores, r: rand.New(rand.NewPCG(1, uint64(i))), held: map[string]lock.Grant{}})
	}
	const phases = 10
	same := 0
	for range phases {
		x.releases(stores[0], x.acquires(stores[0], wants("always-cached")))
		var all sync.WaitGroup
		for _, w := range wanderers {
			all.Go(w.wander)
		}
		all.Wait()
		for _, s := range stores {
			same += x.compareRecents(s)
		}
	}
	if swapped, _ := x.swaps("n:%"); same <= phases || swapped < 20 {
		t.Errorf("%d states were cached and current after %d phases, and %d were written from memory", same, phases, swapped)
	}
}

// compareRecents compares what the connections of s remember with the table, and returns how many locks are remembered
// at their present version.
func (x *site) compareRecents(s *Store) (same int) {
	x.recents(s, func(_ *pgxpool.Conn, r *recents) {
		for _, generation := range []map[string]recent{r.old, r.young} {
			for name, l := range generation {
				is, version := x.read(name)
				if version != l.version {
					continue
				}
				same++
				if len(l.state.Leases) == 0 {
					l.state.Leases = nil
				}
				if !reflect.DeepEqual(is, l.state) {
					x.Errorf("%s is remembered as %+v, and is %+v", name, l.state, is)
				}
			}
		}
	})
	return same
}

// A wanderer is a client that uses a few locks at random.
type wanderer struct {
	*site
	stores []*Store
	r      *rand.Rand
	held   map[string]lock.Grant
}

// wander makes a few calls.
func (w *wanderer) wander() {
	r, held := w.r, w.held
	for range 15 {
		s, name := w.stores[r.IntN(9)/8], fmt.Sprintf("n:%d", r.IntN(4))
		g, holds := held[name]
		if !holds && r.IntN(4) == 0 {
			w.forgetsIdly(s, name)
		}
		var err error
		switch {
		case !holds:
			a := wants(name)
			a.TTL, a.Grace, a.MaxHold = time.Second+fine(r), fine(r), time.Duration(r.Int64N(2))*time.Hour
			a.Metadata = fmt.Appendf(nil, `{"é": [%d], "long": "%0*d"}`, r.IntN(9), 1+r.IntN(300), r.Int64())
			if g, err = s.Acquire(w.Context(), a); err == nil {
				held[name] = g
			}
		case r.IntN(2) == 0:
			_, err = s.Renew(w.Context(), lock.Renew{Name: name, LeaseID: g.ID, TTL: time.Duration(r.Int64N(2)) * (time.Second + fine(r))})
		default:
			delete(held, name)
			err = s.Release(w.Context(), lock.Release{Name: name, LeaseID: g.ID})
		}
		if errors.Is(err, lock.ErrLeaseLost) {
			delete(held, name)
		} else if err != nil && !errors.Is(err, lock.ErrHeld) {
			w.Errorf("%s: %v", name, err)
		}
	}
}

// forgetsIdly has those connections that nobody uses just now forget the lock: it waits for none.
func (x *site) forgetsIdly(s *Store, name string) {
	for _, conn := range s.deciding.AcquireAllIdle(x.Context()) {
		if r := recentsOf(conn.Conn()); r != nil {
			r.drop(name)
		}
		conn.Release()
	}
}

// fine returns up to a tenth of a second, seldom as a length that the table cannot tell.
func fine(r *rand.Rand) time.Duration {
	d := time.Duration(r.Int64N(1e8))
	if r.IntN(8) > 0 {
		d = d.Truncate(time.Millisecond)
	}
	return d
}

// read returns the lock as a transaction reads it, and the xid of who wrote it.
func (x *site) read(name string) (lock.Record, uint32) {
	x.Helper()
	var r row
	var a anchor
	if err := x.outside.QueryRow(x.Context(), sqlLockAnchors, []string{name}).Scan(append(r.targets(), &a.at, &a.version)...); err != nil {
		x.Fatal(err)
	}
	s := r.state()
	if len(s.Leases) == 0 {
		s.Leases = nil
	}
	return s, a.version
}

// TestHistoriesWithSwapsAreSound has three stores be used at random, and what they answered be
// checked: tokens grow, no two holds overlap, nothing ended comes back.
func TestHistoriesWithSwapsAreSound(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	rec, prefix := verify.NewRecorder(), "sound"
	o := workload.Options{Prefix: prefix, Clients: 6, Locks: 6, Operations: 1500, For: time.Minute, TTL: 300 * time.Millisecond, Seed: 5}
	for i := range 3 {
		s, err := Open(t.Context(), x.url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		o.Services = append(o.Services, workload.Replica{Via: fmt.Sprint(i), Locks: s})
	}
	if _, err := workload.Run(t.Context(), rec, o); err != nil {
		t.Fatal(err)
	}
	h := rec.History()
	var err error
	if h.Events, err = verify.Collect(t.Context(), o.Services[0].Locks, prefix+":"); err != nil {
		t.Fatal(err)
	}
	if report := h.Check(verify.CheckOptions{AllowOvertaking: true, AllowWaiters: true}); !report.OK() {
		if err := report.WriteText(t.Output()); err != nil {
			t.Error(err)
		}
		t.Error("what was answered cannot be")
	}
	if swapped, not := x.swaps(prefix + ":%"); swapped == 0 {
		t.Errorf("all %d writes were by transactions that looked", not)
	} else {
		t.Logf("%d writes from memory, %d not", swapped, not)
	}
}
