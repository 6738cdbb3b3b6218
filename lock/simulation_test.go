package lock_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// TestNobodysWakeUpIsLost plays what happens between calls, replicas and the
// clock, from many seeds: everybody who stays is served, in the order of their
// places, and nobody who could be served waits for longer than there is reason to.
func TestNobodysWakeUpIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		arrives float64
		deaths  bool
		within  time.Duration
	}{
		{"from the poll alone, if every NOTIFY is lost", 0, false, pollInterval},
		{"if every other NOTIFY is lost", 0.5, false, pollInterval},
		{"at once, if none is lost", 1, false, notifyDelay},
		{"although replicas fall silent", 0.5, true, lock.ClaimTimeout + lock.ReplicaTTL + pollInterval},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				f := newFleet(rt, rapid.Uint64().Draw(rt, "seed"), c.arrives)
				f.latency.most = c.within
				f.begin(c.deaths)
				f.run()
				f.end()
			})
		})
	}
}

// begin has clients come, some of whom hang up, and replicas die, of which one at
// least lives on.
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

// end checks that everybody who stayed was served, in the order of their places;
// for those whose replica fell silent, not in that order, but served all the same.
func (f *fleet) end() {
	steady := map[int64]bool{}
	for _, v := range f.arrivals {
		steady[v.place] = !v.replicaLost
		if !v.served && !v.hungUp {
			f.t.Fatalf("never served: %+v", v)
		}
	}
	last := int64(0)
	for _, e := range f.events {
		if e.Kind != lock.Granted || !steady[e.Place] || e.Place == 0 {
			continue
		}
		if e.Place <= last {
			f.t.Fatalf("place %d was served after place %d", e.Place, last)
		}
		last = e.Place
	}
	f.advance(lock.MaxWait + lock.PlaceRetention) // for who crashed when nobody was there to see it
	if f.on(f.replicas[0]).do(sweep); len(f.record.Leases)+len(f.record.Queue) > 0 {
		f.t.Fatalf("somebody is left: %+v", f.record)
	}
}

// A latencyWatch sees to it that the first of those who are really there, whatever
// the replicas believe, is told of the lock soon once it could have it.
type latencyWatch struct {
	most  time.Duration
	first *waitingCall // who could have the lock; nil if the first is to wait
	since time.Time
}

// check fails if it takes too long.
func (g *latencyWatch) check(f *fleet) {
	if g.first != nil && f.now.Sub(g.since) > g.most {
		f.t.Fatalf("%+v could have had the lock for %v: %+v", g.first, f.now.Sub(g.since), f.record)
	}
}

// update finds out who could have the lock.
func (g *latencyWatch) update(f *fleet) {
	var told []lock.Lease
	for _, l := range f.record.ActiveLeases(f.now) {
		if !l.Unclaimed() {
			told = append(told, l)
		}
	}
	var first *waitingCall
	for _, w := range f.record.Queue {
		if v := f.waiting[w.Attachment]; v != nil && !v.served && !v.hungUp && f.isAlive(v.Replica) {
			if compatible(told, f.record.Capacity, w.Lease.Mode, w.Capacity) {
				first = v
			}
			break
		}
	}
	if first != g.first {
		g.first, g.since = first, f.now
	}
}
