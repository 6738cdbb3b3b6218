package client

import (
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxWait is the longest wait of a request to one of several addresses, so that one that is dead is noticed while
	// the service keeps the place.
	maxWait = lock.PlaceRetention
	// minWait is the shortest wait that is learned from a cut. A request that failed sooner was not cut, but failed.
	minWait = time.Second
	// cutsLast is how long a cut is remembered.
	cutsLast = 10 * time.Minute
	// cutsTogether is the time between cuts of which the longest one counts. A proxy cuts all waits after the same time; a
	// replica or a proxy that crashes cuts them at the same time, however long they have lasted.
	cutsTogether = time.Second
)

// A waitLimit is the longest wait that a client asks for in one request. A proxy may cut long requests; the limit then
// shrinks to what passes. A longer wait takes several requests, one after another.
type waitLimit struct {
	usual time.Duration

	mu    sync.Mutex
	lower time.Duration // since a cut
	cutAt time.Time     // when the last cut came
}

func newWaitLimit(severalAddresses bool) *waitLimit {
	if severalAddresses {
		return &waitLimit{usual: maxWait}
	}
	return &waitLimit{usual: lock.MaxWait}
}

// cut is called when a wait was cut after that time.
func (w *waitLimit) cut(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	passes := max(min(after*8/10, w.usual), minWait)
	if time.Since(w.cutAt) < cutsTogether {
		w.lower = max(w.lower, passes)
	} else {
		w.lower = min(w.longest(), passes)
	}
	w.cutAt = time.Now()
}

// longest returns the longest wait. The caller holds mu.
func (w *waitLimit) longest() time.Duration {
	if time.Since(w.cutAt) < cutsLast {
		return w.lower
	}
	return w.usual
}

// limit returns the wait, or the longest one if that is shorter.
func (w *waitLimit) limit(wait time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(wait, w.longest())
}

// split calls send with the parts of a wait, until send reports that it is done or the wait is over. more reports
// whether there is a further part. A wait that the service refuses as too long is not split.
func (w *waitLimit) split(wait time.Duration, send func(part time.Duration, more bool) (again bool)) {
	until := time.Now().Add(wait)
	for left := wait; ; left = max(time.Until(until), 0) {
		part := left
		if wait <= lock.MaxWait {
			part = w.limit(left)
		}
		if !send(part, part < left) || left == 0 {
			return
		}
	}
}
