package store

import (
	"container/heap"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/lock"
)

// sweepers is how many locks are swept at once.
const sweepers = 256

// A sweep knows, on this process's own clock, when time alone will have changed
// the locks that it has heard of: when a lease is over, or a place is not kept any
// longer. It may be wrong: what is so is decided when the lock is swept.
type sweep struct {
	mu     sync.Mutex
	ends   endHeap
	byName map[string]*end
	ending map[string]bool // names that were due and are being seen to: true if they were due again
	sooner chan struct{}   // has a value when the first end has changed
}

// An end is when time will have changed the lock of a name.
type end struct {
	name  string
	at    time.Time
	index int // in the heap
}

func newSweep() *sweep {
	return &sweep{byName: make(map[string]*end), ending: make(map[string]bool), sooner: make(chan struct{}, 1)}
}

// note hears what was decided.
func (w *sweep) note(outcomes []outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range outcomes {
		for _, s := range o.Locks {
			if o.Due.IsZero() {
				w.forget(s.Name)
				continue
			}
			w.expect(s.Name, o.until(o.Due))
		}
	}
}

// hear notes an end that was read from the table, unless one is known, which is
// at least as good, or has come and is being seen to.
func (w *sweep) hear(name string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ending := w.ending[name]; w.byName[name] == nil && !ending {
		w.expect(name, at)
	}
}

func (w *sweep) expect(name string, at time.Time) {
	e := w.byName[name]
	if e == nil {
		e = &end{name: name, at: at}
		w.byName[name] = e
		heap.Push(&w.ends, e)
	} else {
		e.at = at
		heap.Fix(&w.ends, e.index)
	}
	if e.index == 0 {
		select {
		case w.sooner <- struct{}{}:
		default:
		}
	}
}

func (w *sweep) forget(name string) {
	if e := w.byName[name]; e != nil {
		heap.Remove(&w.ends, e.index)
		delete(w.byName, name)
	}
}

// due takes the names whose time has come by now, each to be given back to
// seenTo, and says how long it is until the next one is.
func (w *sweep) due(now time.Time) (names []string, next time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.ends) > 0 && !now.Before(w.ends[0].at) {
		name := w.ends[0].name
		w.forget(name)
		_, again := w.ending[name]
		if w.ending[name] = again; !again {
			names = append(names, name)
		}
	}
	if len(w.ends) == 0 {
		return names, time.Hour
	}
	return names, w.ends[0].at.Sub(now)
}

// seenTo gives back a name that was due. If it has been due again meanwhile, it
// is once more.
func (w *sweep) seenTo(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending[name] {
		w.expect(name, time.Now())
	}
	delete(w.ending, name)
}

// sweepEnds sweeps locks as their time comes, until the store closes. One whose
// lease turns out to have been renewed is noted again by the decision that says so.
func (s *Store) sweepEnds() {
	var sweeping errgroup.Group
	sweeping.SetLimit(sweepers)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			_ = sweeping.Wait() // they return no errors
			return
		case <-s.sweep.sooner:
		case <-timer.C:
		}
		names, next := s.sweep.due(time.Now())
		for _, name := range names {
			sweeping.Go(func() error {
				s.sweepLock(name)
				return nil
			})
		}
		timer.Reset(next)
	}
}

// sweepLock writes down what time has changed about the lock. What fails is found
// again by the census.
func (s *Store) sweepLock(name string) {
	defer s.sweep.seenTo(name)
	if _, err := s.do(s.ctx, lock.Sweep{Name: name}); err != nil && s.ctx.Err() == nil {
		s.log.Warn("cannot sweep lock", "lock", name, "error", err)
	}
}

// An endHeap is a heap.Interface, the earliest end first.
type endHeap []*end

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h endHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for package heap.
func (h *endHeap) Push(x any) {
	e := x.(*end)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop is for package heap.
func (h *endHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}
