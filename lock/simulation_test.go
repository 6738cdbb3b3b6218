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
		{"from the poll alone, if every NOTIFY is lost", 0, false, poll},
		{"if every other NOTIFY is lost", 0.5, false, poll},
		{"at once, if none is lost", 1, false, notified},
		{"although replicas fall silent", 0.5, true, lock.ClaimTimeout + lock.ReplicaTTL + poll},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				f := newFleet(rt, rapid.Uint64().Draw(rt, "seed"), c.arrives)
				f.ahead.most = c.within
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
		f.in(f.between(0, time.Second), func() {
			if v := f.visit(a); f.rnd.IntN(5) == 0 {
				f.in(f.between(0, 2*time.Second), func() { f.hangUp(v) })
			}
		})
	}
	for _, r := range f.replicas[1:] {
		if deaths {
			f.in(f.between(0, 3*time.Second), func() { f.kill(r) })
		}
	}
}

// end checks that everybody who stayed was served, in the order of their places;
// for those whose replica fell silent, not in that order, but served all the same.
func (f *fleet) end() {
	steady := map[int64]bool{}
	for _, v := range f.visits {
		steady[v.place] = !v.shaken
		if !v.served && !v.left {
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
	f.pass(lock.MaxWait + lock.PlaceRetention) // for who crashed when nobody was there to see it
	if f.on(f.replicas[0]).do(sweep); len(f.state.Leases)+len(f.state.Queue) > 0 {
		f.t.Fatalf("somebody is left: %+v", f.state)
	}
}

// A watchman sees to it that the first of those who are really there, whatever
// the replicas believe, is told of the lock soon once it could have it.
type watchman struct {
	most  time.Duration
	first *visit // who could have the lock; nil if the first is to wait
	since time.Time
}

// reports fails if it takes too long.
func (g *watchman) reports(f *fleet) {
	if g.first != nil && f.now.Sub(g.since) > g.most {
		f.t.Fatalf("%+v could have had the lock for %v: %+v", g.first, f.now.Sub(g.since), f.state)
	}
}

// looks finds out who could have the lock.
func (g *watchman) looks(f *fleet) {
	var told []lock.Lease
	for _, l := range f.state.ActiveLeases(f.now) {
		if !l.Unclaimed() {
			told = append(told, l)
		}
	}
	var first *visit
	for _, w := range f.state.Queue {
		if v := f.waiting[w.Attachment]; v != nil && !v.served && !v.left && f.lives(v.Replica) {
			if together(told, f.state.Capacity, w.Lease.Mode, w.Capacity) {
				first = v
			}
			break
		}
	}
	if first != g.first {
		g.first, g.since = first, f.now
	}
}
