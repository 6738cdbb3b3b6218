package expiry

import (
	"container/heap"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// maxSweeps is how many locks are swept at once.
const maxSweeps = 256

// Timers know, on this process's own clock, when time alone may change the locks that it knows. Make them with
// New.
type Timers struct {
	db    *database.DB
	sweep func(ctx context.Context, names []string) error

	mu       sync.Mutex
	timers   map[string]*timer // by the names of the locks
	queue    timerQueue        // the same timers
	due      []string          // locks whose instant has come, and sets that are ready: names separated by spaces
	sweeping map[string]bool   // the locks that are due or being swept; true: to be swept again after that
	alarm    *time.Timer       // fires when a lock is due, and at the first instant of the queue
	urgent   chan struct{}     // has a value when all locks are to be read soon

	counts atomic.Pointer[LockCounts] // of the last complete pass of the scan
}

// A timer makes its lock due at its instant.
type timer struct {
	name  string
	at    time.Time
	index int // in the queue
}

// A timerQueue has the timer with the earliest instant first. It is a heap.Interface.
type timerQueue []*timer

func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push appends a *timer.
func (q *timerQueue) Push(x any) {
	added := x.(*timer)
	added.index = len(*q)
	*q = append(*q, added)
}

// Pop removes the last timer.
func (q *timerQueue) Pop() any {
	n := len(*q) - 1
	last := (*q)[n]
	(*q)[n] = nil
	*q = (*q)[:n]
	return last
}

// New returns Timers without any lock. sweep submits a lock.Sweep, whose outcome must be passed to Update before it
// returns.
func New(db *database.DB, sweep func(ctx context.Context, names []string) error) *Timers {
	return &Timers{
		db: db, sweep: sweep, timers: make(map[string]*timer), sweeping: make(map[string]bool),
		alarm: time.NewTimer(0), urgent: make(chan struct{}, 1),
	}
}

// Update sets the timers of all locks that were decided on, and sweeps the sets that are ready. Call it after each
// commit. If two commits on a lock are passed in the wrong order, its timer may be late; the scan finds the lock.
func (t *Timers) Update(outcomes []*row.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range outcomes {
		for j := range o.Locks {
			if o.Due.IsZero() {
				t.remove(o.Locks[j].Name)
			} else {
				t.set(o.Locks[j].Name, o.Until(o.Due))
			}
		}
		for _, set := range o.ReadySets {
			t.makeDue(strings.Join(set, " "))
		}
	}
}

// SweepSoon sweeps the locks.
func (t *Timers) SweepSoon(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		t.makeDue(name)
	}
}

// setSooner sets the timer of a lock that was read, unless the lock has one that fires before, or is being swept. An
// instant that is too soon costs a sweep in vain; one that is too late may be that of a lease which has ended elsewhere.
func (t *Timers) setSooner(name string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, timed := t.timers[name]
	if _, swept := t.sweeping[name]; !swept && (!timed || at.Before(known.at)) {
		t.set(name, at)
	}
}

// set needs t.mu.
func (t *Timers) set(name string, at time.Time) {
	known, timed := t.timers[name]
	if timed {
		known.at = at
		heap.Fix(&t.queue, known.index)
	} else {
		known = &timer{name: name, at: at}
		t.timers[name] = known
		heap.Push(&t.queue, known)
	}
	if known.index == 0 {
		t.setAlarm()
	}
}

// remove needs t.mu. It leaves the alarm, which may fire for nothing.
func (t *Timers) remove(name string) {
	if known, timed := t.timers[name]; timed {
		heap.Remove(&t.queue, known.index)
		delete(t.timers, name)
	}
}

// makeDue makes the lock due, or due again if it is being swept. It needs t.mu.
func (t *Timers) makeDue(name string) {
	_, again := t.sweeping[name]
	if t.sweeping[name] = again; !again {
		t.due = append(t.due, name)
		t.setAlarm()
	}
}

// setAlarm needs t.mu.
func (t *Timers) setAlarm() {
	switch {
	case len(t.due) > 0:
		t.alarm.Reset(0)
	case len(t.queue) > 0:
		t.alarm.Reset(time.Until(t.queue[0].at))
	}
}

// takeDue returns the locks to sweep, each of which must be passed to swept.
func (t *Timers) takeDue() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for now := time.Now(); len(t.queue) > 0 && !t.queue[0].at.After(now); {
		name := t.queue[0].name
		t.remove(name)
		t.makeDue(name)
	}
	due := t.due
	t.due = nil
	t.setAlarm()
	return due
}

// swept records that the sweep of the lock is over. If its instant came again meanwhile, the lock is due at once.
func (t *Timers) swept(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	again := t.sweeping[name]
	delete(t.sweeping, name)
	if again {
		t.makeDue(name)
	}
}

// Run sweeps each lock when its instant comes, until the database is stopped and all sweeps have returned.
func (t *Timers) Run() {
	var sweeps errgroup.Group
	sweeps.SetLimit(maxSweeps)
	for {
		select {
		case <-t.db.Context().Done():
			_ = sweeps.Wait() // the functions return nil
			return
		case <-t.alarm.C:
		}
		for _, name := range t.takeDue() {
			sweeps.Go(func() error {
				t.sweepOne(name)
				return nil
			})
		}
	}
}

// sweepOne sweeps the lock, or the locks of a set. If that fails, a scan finds a lock again, and the claim of a waiting
// call finds its set. A lock that cannot be read was logged already.
func (t *Timers) sweepOne(name string) {
	err := t.sweep(t.db.Context(), strings.Split(name, " "))
	t.swept(name)
	if err != nil && !errors.Is(err, database.ErrMalformed) && t.db.Context().Err() == nil {
		t.db.Log.Warn("cannot sweep lock", "lock", name, "error", database.CauseOf(err))
		t.ScanSoon()
	}
}
