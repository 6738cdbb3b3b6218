package lock_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// poll is how often a replica asks how each of its waiters stands, at least.
	poll = 500 * time.Millisecond
	// notified is how long a NOTIFY is under way at most.
	notified = 5 * time.Millisecond
)

// A fleet is replicas that serve one lock, in virtual time: each tells its own
// waiters in memory, polls for them, and sweeps when it is due; what it tells the
// others by NOTIFY may be lost.
type fleet struct {
	*world
	rnd      *rand.Rand
	replicas []lock.Replica
	arrives  float64 // which part of the NOTIFYs
	agenda   []errand
	alarms   map[lock.Replica]time.Time
	waiting  map[lock.Attachment]*visit
	visits   []*visit
	ahead    watchman
}

// An errand is something to be done at an instant.
type errand struct {
	at time.Time
	do func()
}

// A visit is a call that waits, or did.
type visit struct {
	lock.Acquire
	place  int64 // zero: it did not wait
	shaken bool  // whether its replica fell silent while it waited
	left   bool  // whether it hung up, or its client went elsewhere
	served bool
}

func newFleet(t tester, seed uint64, arrives float64) *fleet {
	f := &fleet{
		world: newWorld(t), rnd: rand.New(rand.NewPCG(seed, 0)), arrives: arrives,
		alarms: map[lock.Replica]time.Time{}, waiting: map[lock.Attachment]*visit{},
	}
	f.quickly = true
	f.replicas = []lock.Replica{1, 2, 3}[:2+f.rnd.IntN(2)]
	return f
}

func (f *fleet) between(least, greatest time.Duration) time.Duration {
	return least + time.Duration(f.rnd.Int64N(int64(greatest-least)+1))
}

// in has something be done after a while.
func (f *fleet) in(d time.Duration, do func()) {
	at := f.now.Add(d)
	i := slices.IndexFunc(f.agenda, func(e errand) bool { return e.at.After(at) })
	if i < 0 {
		i = len(f.agenda)
	}
	f.agenda = slices.Insert(f.agenda, i, errand{at, do})
}

// run does all errands, in order.
func (f *fleet) run() {
	for len(f.agenda) > 0 {
		next := f.agenda[0]
		f.agenda = f.agenda[1:]
		if f.now = next.at; f.now.Sub(t0) > 5*time.Minute {
			f.t.Fatalf("it never ends: %+v", f.state)
		}
		f.ahead.reports(f)
		next.do()
		f.ahead.looks(f)
	}
}

func (f *fleet) lives(r lock.Replica) bool {
	_, silent := f.silent[r]
	return !silent
}

// anybody returns a replica that lives.
func (f *fleet) anybody() lock.Replica {
	alive := slices.DeleteFunc(slices.Clone(f.replicas), func(r lock.Replica) bool { return !f.lives(r) })
	return alive[f.rnd.IntN(len(alive))]
}

// decides has the replica decide, tell whom it is to tell, and be there when it is due.
func (f *fleet) decides(r lock.Replica, cmd lock.Command) lock.Decision {
	d := f.on(r).do(cmd)
	for _, w := range d.Promoted {
		switch v := f.waiting[w.Attachment]; {
		case w.Replica == r:
			f.serve(v)
		case f.rnd.Float64() < f.arrives:
			f.in(f.between(time.Millisecond, notified), func() { f.wake(v) })
		}
	}
	if due := f.now.Add(d.Due.Sub(d.Now)); d.Due.IsZero() {
		delete(f.alarms, r)
	} else if !f.alarms[r].Equal(due) {
		f.alarms[r] = due
		f.in(due.Sub(f.now), func() {
			if f.alarms[r].Equal(due) && f.lives(r) {
				f.decides(r, sweep)
			}
		})
	}
	return d
}

// visit has a new call come in at any replica.
func (f *fleet) visit(a lock.Acquire) *visit {
	a.Wait = lock.MaxWait
	v := &visit{Acquire: f.on(f.anybody()).call(a)}
	f.visits = append(f.visits, v)
	f.waiting[v.Attachment] = v
	if d := f.decides(v.Replica, v.Acquire); !d.Queued {
		f.serve(v)
		return v
	}
	i := slices.IndexFunc(f.state.Queue, func(w *lock.Waiter) bool { return w.Attachment == v.Attachment })
	v.place = f.state.Queue[i].Place
	f.poll(v)
	return v
}

// poll has the replica ask for v now and then.
func (f *fleet) poll(v *visit) {
	f.in(f.between(poll/2, poll), func() {
		if f.wake(v); !v.served && !v.left {
			f.poll(v)
		}
	})
}

// wake has the replica ask for v, if it lives and v still waits.
func (f *fleet) wake(v *visit) {
	if v.served || v.left || !f.lives(v.Replica) {
		return
	}
	switch d := f.decides(v.Replica, claim(v.Acquire)); {
	case d.Err != nil:
		f.t.Fatalf("%+v was sent away: %v", v, d.Err)
	case !d.Queued:
		f.serve(v)
	}
}

// serve tells v of its lease, which is released some time later, or never.
func (f *fleet) serve(v *visit) {
	v.served = true
	if f.rnd.Float64() < 0.1 {
		return // the holder has crashed
	}
	f.in(f.between(time.Millisecond, 300*time.Millisecond), func() {
		f.decides(f.anybody(), lock.Release{Name: name, LeaseID: v.LeaseID})
	})
}

// hangUp has the client of v be gone.
func (f *fleet) hangUp(v *visit) {
	if !v.served && f.lives(v.Replica) {
		v.left = true
		f.decides(v.Replica, hangup(v.Acquire))
	}
}

// kill has the replica fall silent, and perhaps be heard of again. Some of the
// clients that wait there come again, to another one.
func (f *fleet) kill(r lock.Replica) {
	f.dies(r)
	back := f.rnd.IntN(2) == 0
	if back {
		f.in(f.between(time.Second, 8*time.Second), func() { f.comesBack(r) })
	}
	for _, v := range f.visits {
		if v.Replica != r || v.served || v.left {
			continue
		}
		v.shaken = true
		moves := f.rnd.IntN(2) == 0
		v.left = moves || !back
		if moves {
			f.in(f.between(100*time.Millisecond, 4*time.Second), func() { f.visit(v.Acquire).shaken = true })
		}
	}
}
