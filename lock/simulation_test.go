package lock_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// TestNoWakeUpIsLost simulates calls and replicas from many seeds. Every waiter that stays is granted the lock, in
// the order of the places, and within the given time after it could have been granted.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		delivered float64
		deaths    bool
		within    time.Duration
	}{
		{"every NOTIFY is lost, so that only polling helps", 0, false, pollInterval},
		{"every other NOTIFY is lost", 0.5, false, pollInterval},
		{"no NOTIFY is lost", 1, false, notifyDelay},
		{"replicas die", 0.5, true, lock.ClaimTimeout + lock.ReplicaTTL + pollInterval},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				f := newFleet(rt, rapid.Uint64().Draw(rt, "seed"), c.delivered)
				f.latency.most = c.within
				f.begin(c.deaths)
				f.run()
				f.end()
			})
		})
	}
}

// begin schedules the calls, some of which disconnect, and the deaths of replicas. At least one replica stays alive.
func (f *fleet) begin(deaths bool) {
	modes := [][]func(*lock.Acquire){
		{func(*lock.Acquire) {}}, {func(*lock.Acquire) {}, shared, shared}, {permit(3)}, {func(*lock.Acquire) {}, shared, permit(2)},
	}[f.rnd.IntN(4)]
	for n := range 5 + f.rnd.IntN(20) {
		a := acquire(byte(n+1), modes[f.rnd.IntN(len(modes))], func(a *lock.Acquire) { a.TTL = time.Second })
		f.after(f.between(0, time.Second), func() {
			if v := f.arrive(a); f.rnd.IntN(5) == 0 {
				f.after(f.between(0, 2*time.Second), func() { f.hangUp(v) })
			}
		})
	}
	for _, r := range f.replicas[1:] {
		if deaths {
			f.after(f.between(0, 3*time.Second), func() { f.kill(r) })
		}
	}
}

// end checks that every waiter that stayed was granted the lock, in the order of the places. The order does not apply
// to waiters that were detached.
func (f *fleet) end() {
	ordered := map[int64]bool{}
	for _, v := range f.arrivals {
		ordered[v.place] = !v.detached
		if !v.served && !v.hungUp {
			f.t.Fatalf("never granted the lock: %+v", v)
		}
	}
	last := int64(0)
	for _, e := range f.events {
		if e.Kind != lock.Granted || !ordered[e.Place] || e.Place == 0 {
			continue
		}
		if e.Place <= last {
			f.t.Fatalf("place %d was granted the lock after place %d", e.Place, last)
		}
		last = e.Place
	}
	f.advance(lock.MaxWait + lock.PlaceRetention) // for leases whose holder crashed
	if f.on(f.replicas[0]).do(sweep); len(f.record.Leases)+len(f.record.Queue) > 0 {
		f.t.Fatalf("the lock is not free in the end: %+v", f.record)
	}
}

// A latencyWatch measures how long the first connected waiter has to wait after it could have been granted the lock,
// whatever the replicas know.
type latencyWatch struct {
	most  time.Duration
	first *waitingCall // could be granted the lock; nil for none
	since time.Time
}

// check fails if the waiter has waited too long.
func (g *latencyWatch) check(f *fleet) {
	if g.first != nil && f.now.Sub(g.since) > g.most {
		f.t.Fatalf("%+v could have been granted the lock for %v: %+v", g.first, f.now.Sub(g.since), f.record)
	}
}

// update finds the waiter that could be granted the lock.
func (g *latencyWatch) update(f *fleet) {
	var claimed []lock.Lease
	for _, l := range f.record.ActiveLeases(f.now) {
		if !l.Unclaimed() {
			claimed = append(claimed, l)
		}
	}
	var first *waitingCall
	for _, w := range f.record.Queue {
		if v := f.waiting[w.Attachment]; v != nil && !v.served && !v.hungUp && f.isAlive(v.Replica) {
			if compatible(claimed, f.record.Capacity, w.Lease.Mode, w.Capacity) {
				first = v
			}
			break
		}
	}
	if first != g.first {
		g.first, g.since = first, f.now
	}
}
