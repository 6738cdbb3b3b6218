package expiry

import (
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
	timers   map[string]timer
	due      []string        // locks whose instant has come, and sets that are ready: names separated by spaces
	sweeping map[string]bool // the locks that are due or being swept; true: to be swept again after that
	wake     chan struct{}   // has a value when a lock has become due
	urgent   chan struct{}   // has a value when all locks are to be read soon

	counts atomic.Pointer[LockCounts] // of the last complete pass of the scan
}

// A timer fires at its instant.
type timer struct {
	*time.Timer
	at time.Time
}

// New returns Timers without any lock. sweep submits a lock.Sweep, whose outcome must be passed to Update before it
// returns.
func New(db *database.DB, sweep func(ctx context.Context, names []string) error) *Timers {
	return &Timers{
		db: db, sweep: sweep, timers: make(map[string]timer), sweeping: make(map[string]bool),
		wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
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
	if known, timed := t.timers[name]; timed && known.Reset(time.Until(at)) {
		t.timers[name] = timer{known.Timer, at}
		return
	}
	t.remove(name) // its function has begun, and finds that it was replaced
	var set *time.Timer
	set = time.AfterFunc(time.Until(at), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timers[name].Timer == set { // otherwise it was removed or replaced after its instant
			delete(t.timers, name)
			t.makeDue(name)
		}
	})
	t.timers[name] = timer{set, at}
}

// remove needs t.mu.
func (t *Timers) remove(name string) {
	if known, timed := t.timers[name]; timed {
		known.Stop()
		delete(t.timers, name)
	}
}

// makeDue makes the lock due, or due again if it is being swept. It needs t.mu.
func (t *Timers) makeDue(name string) {
	_, again := t.sweeping[name]
	if t.sweeping[name] = again; again {
		return
	}
	t.due = append(t.due, name)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// takeDue returns the locks to sweep, each of which must be passed to swept.
func (t *Timers) takeDue() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	due := t.due
	t.due = nil
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
		case <-t.wake:
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
