package lock_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// pollInterval is the longest time between two claims that a replica makes for a waiter.
	pollInterval = 500 * time.Millisecond
	// notifyDelay is the longest time that a NOTIFY takes.
	notifyDelay = 5 * time.Millisecond
)

// A fleet is several replicas that serve one lock, in virtual time. Each replica notifies its own waiters directly,
// polls for them, and sweeps when a sweep is due. Its notifications to other replicas may be lost.
type fleet struct {
	*model
	rnd       *rand.Rand
	replicas  []lock.Replica
	delivered float64 // probability that a NOTIFY arrives
	schedule  []action
	alarms    map[lock.Replica]time.Time
	waiting   map[lock.Attachment]*waitingCall
	arrivals  []*waitingCall
	latency   latencyWatch
}

// An action happens at an instant.
type action struct {
	at time.Time
	do func()
}

// A waitingCall is a call that waits or has waited.
type waitingCall struct {
	lock.Acquire
	place    int64 // zero: granted without waiting
	detached bool  // its replica died during the wait, or its client was disconnected for a while
	hungUp   bool  // it disconnected, or its client moved to another replica
	served   bool
}

func newFleet(t tester, seed uint64, arrives float64) *fleet {
	f := &fleet{
		model: newModel(t), rnd: rand.New(rand.NewPCG(seed, 0)), delivered: arrives,
		alarms: map[lock.Replica]time.Time{}, waiting: map[lock.Attachment]*waitingCall{},
	}
	f.skipSlow = true
	f.replicas = []lock.Replica{1, 2, 3}[:2+f.rnd.IntN(2)]
	return f
}

func (f *fleet) between(least, greatest time.Duration) time.Duration {
	return least + time.Duration(f.rnd.Int64N(int64(greatest-least)+1))
}

// after schedules an action.
func (f *fleet) after(d time.Duration, do func()) {
	at := f.now.Add(d)
	i := slices.IndexFunc(f.schedule, func(e action) bool { return e.at.After(at) })
	if i < 0 {
		i = len(f.schedule)
	}
	f.schedule = slices.Insert(f.schedule, i, action{at, do})
}

// run runs all actions in order.
func (f *fleet) run() {
	for len(f.schedule) > 0 {
		next := f.schedule[0]
		f.schedule = f.schedule[1:]
		if f.now = next.at; f.now.Sub(t0) > 5*time.Minute {
			f.t.Fatalf("the simulation does not end: %+v", f.record)
		}
		f.latency.check(f)
		next.do()
		f.latency.update(f)
	}
}

func (f *fleet) isAlive(r lock.Replica) bool {
	_, silent := f.silent[r]
	return !silent
}

// anyAlive returns a random replica that is alive.
func (f *fleet) anyAlive() lock.Replica {
	alive := slices.DeleteFunc(slices.Clone(f.replicas), func(r lock.Replica) bool { return !f.isAlive(r) })
	return alive[f.rnd.IntN(len(alive))]
}

// decide applies the command at the replica, sends its notifications, and schedules the next sweep.
func (f *fleet) decide(r lock.Replica, cmd lock.Command) lock.Decision {
	d := f.on(r).do(cmd)
	for _, w := range d.Promoted {
		switch v := f.waiting[w.Attachment]; {
		case w.Replica == r:
			f.serve(v)
		case f.rnd.Float64() < f.delivered:
			f.after(f.between(time.Millisecond, notifyDelay), func() { f.wake(v) })
		}
	}
	if due := f.now.Add(d.Due.Sub(d.Now)); d.Due.IsZero() {
		delete(f.alarms, r)
	} else if !f.alarms[r].Equal(due) {
		f.alarms[r] = due
		f.after(due.Sub(f.now), func() {
			if f.alarms[r].Equal(due) && f.isAlive(r) {
				f.decide(r, sweep)
			}
		})
	}
	return d
}

// arrive starts a waiting call at a random replica.
func (f *fleet) arrive(a lock.Acquire) *waitingCall {
	a.Wait = lock.MaxWait
	v := &waitingCall{Acquire: f.on(f.anyAlive()).call(a)}
	f.arrivals = append(f.arrivals, v)
	f.waiting[v.Attachment] = v
	if d := f.decide(v.Replica, v.Acquire); !d.Queued {
		f.serve(v)
		return v
	}
	i := slices.IndexFunc(f.record.Queue, func(w *lock.Waiter) bool { return w.Attachment == v.Attachment })
	v.place = f.record.Queue[i].Place
	f.poll(v)
	return v
}

// poll claims for v at random intervals.
func (f *fleet) poll(v *waitingCall) {
	f.after(f.between(pollInterval/2, pollInterval), func() {
		if f.wake(v); !v.served && !v.hungUp {
			f.poll(v)
		}
	})
}

// wake claims for v, if its replica is alive and v still waits.
func (f *fleet) wake(v *waitingCall) {
	if v.served || v.hungUp || !f.isAlive(v.Replica) {
		return
	}
	switch d := f.decide(v.Replica, claim(v.Acquire)); {
	case d.Err != nil:
		f.t.Fatalf("%+v was refused: %v", v, d.Err)
	case !d.Queued:
		f.serve(v)
	}
}

// serve delivers the lease to v, and schedules its release unless the holder crashes.
func (f *fleet) serve(v *waitingCall) {
	v.served = true
	if f.rnd.Float64() < 0.1 {
		return // the holder crashes
	}
	f.after(f.between(time.Millisecond, 300*time.Millisecond), func() {
		f.decide(f.anyAlive(), lock.Release{Name: name, LeaseID: v.LeaseID})
	})
}

// hangUp disconnects the client of v, which may return and must find its place then.
func (f *fleet) hangUp(v *waitingCall) {
	if v.served || !f.isAlive(v.Replica) {
		return
	}
	v.hungUp = true
	f.decide(v.Replica, disconnect(v.Acquire))
	if f.rnd.IntN(2) == 0 {
		return
	}
	v.detached = true
	f.after(f.between(0, lock.PlaceRetention-1), func() {
		again := f.arrive(v.Acquire)
		if again.detached = true; again.place != 0 && again.place != v.place {
			f.t.Fatalf("%+v returned, and has place %d", v, again.place)
		}
	})
}

// kill silences the replica, perhaps for a while only. Some of its waiting clients retry at another replica.
func (f *fleet) kill(r lock.Replica) {
	f.silence(r)
	back := f.rnd.IntN(2) == 0
	if back {
		f.after(f.between(time.Second, 8*time.Second), func() { f.unsilence(r) })
	}
	for _, v := range f.arrivals {
		if v.Replica != r || v.served || v.hungUp {
			continue
		}
		v.detached = true
		moves := f.rnd.IntN(2) == 0
		v.hungUp = moves || !back
		if moves {
			f.after(f.between(100*time.Millisecond, 4*time.Second), func() { f.arrive(v.Acquire).detached = true })
		}
	}
}
