package expiry

import (
	"container/heap"
	"context"
	"sync"
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
	sweep func(ctx context.Context, name string) error

	mu       sync.Mutex
	queue    timerHeap
	byName   map[string]*timer
	sweeping map[string]bool // locks that are being swept: true if they are to be swept again
	earlier  chan struct{}   // has a value when the first timer has changed
}

// A timer is when time may change a lock.
type timer struct {
	name  string
	at    time.Time
	index int // in the heap
}

// New returns Timers without any lock. sweep submits a lock.Sweep of one lock, whose outcome must be passed to Note
// before it returns.
func New(db *database.DB, sweep func(ctx context.Context, name string) error) *Timers {
	return &Timers{
		db: db, sweep: sweep, byName: make(map[string]*timer), sweeping: make(map[string]bool),
		earlier: make(chan struct{}, 1),
	}
}

// Note sets the timers of all locks that were decided on. Call it after each commit, in the order of the commits of a
// lock.
func (t *Timers) Note(outcomes []row.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range outcomes {
		o := &outcomes[i]
		for j := range o.Locks {
			if o.Due.IsZero() {
				t.remove(o.Locks[j].Name)
			} else {
				t.set(o.Locks[j].Name, o.Until(o.Due))
			}
		}
	}
}

// suggest sets the timer of a lock that was read, unless there is one, which is at least as good, or the lock is being
// swept.
func (t *Timers) suggest(name string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, swept := t.sweeping[name]; t.byName[name] == nil && !swept {
		t.set(name, at)
	}
}

// set and the methods below need t.mu.
func (t *Timers) set(name string, at time.Time) {
	tm := t.byName[name]
	if tm == nil {
		tm = &timer{name: name, at: at}
		t.byName[name] = tm
		heap.Push(&t.queue, tm)
	} else {
		tm.at = at
		heap.Fix(&t.queue, tm.index)
	}
	if tm.index == 0 {
		select {
		case t.earlier <- struct{}{}:
		default:
		}
	}
}

func (t *Timers) remove(name string) {
	if tm := t.byName[name]; tm != nil {
		heap.Remove(&t.queue, tm.index)
		delete(t.byName, name)
	}
}

// due removes the timers whose instant has come, and returns the locks to sweep, each of which must be passed to
// swept. next is how long it is until the next instant.
func (t *Timers) due(now time.Time) (names []string, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) > 0 && !now.Before(t.queue[0].at) {
		name := t.queue[0].name
		t.remove(name)
		_, again := t.sweeping[name]
		if t.sweeping[name] = again; !again {
			names = append(names, name)
		}
	}
	if len(t.queue) == 0 {
		return names, time.Hour
	}
	return names, t.queue[0].at.Sub(now)
}

// swept records that the sweep of the lock is over. If its instant came again meanwhile, the lock is due at once.
func (t *Timers) swept(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sweeping[name] {
		t.set(name, time.Now())
	}
	delete(t.sweeping, name)
}

// Run sweeps each lock when its instant comes, until the database is stopped and all sweeps have returned.
func (t *Timers) Run() {
	var sweeps errgroup.Group
	sweeps.SetLimit(maxSweeps)
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		select {
		case <-t.db.Context().Done():
			_ = sweeps.Wait() // the functions return nil
			return
		case <-t.earlier:
		case <-wake.C:
		}
		names, next := t.due(time.Now())
		for _, name := range names {
			sweeps.Go(func() error {
				t.sweepOne(name)
				return nil
			})
		}
		wake.Reset(next)
	}
}

// sweepOne sweeps the lock. If that fails, the scan will find it again.
func (t *Timers) sweepOne(name string) {
	defer t.swept(name)
	if err := t.sweep(t.db.Context(), name); err != nil && t.db.Context().Err() == nil {
		t.db.Log.Warn("cannot sweep lock", "lock", name, "error", err)
	}
}

// A timerHeap is a heap.Interface, the earliest timer first.
type timerHeap []*timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for package heap.
func (h *timerHeap) Push(x any) {
	tm := x.(*timer)
	tm.index = len(*h)
	*h = append(*h, tm)
}

// Pop is for package heap.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	tm := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return tm
}
