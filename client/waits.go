package client

import (
	"net/http"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxWait is the longest wait of a request to one of several addresses, so that a dead one is noticed while the
	// service keeps the place.
	maxWait = lock.PlaceRetention
	// minWait is the shortest wait that is learned. A request that failed sooner was not cut, but failed.
	minWait = time.Second
	// atOnce is how soon after a cut the next wait is sent.
	atOnce = time.Second
	// limitLasts is how long a limit is remembered.
	limitLasts = 10 * time.Minute
)

// waits are the lengths of the waits that a client asks for. A longer wait takes several requests, one after another.
//
// A proxy may limit the time of a request, and cut longer ones. So does a replica that crashes, but once and all of them
// together. So a cut is a proxy's limit if it is a 504, or if it is the second one after about the same time, of a wait
// that was sent at once after the first. Then requests ask for 80 % of that time, for ten minutes, and the address counts
// as well; after any other cut, the wait goes on at the next address. testdata/waits.json has the cases, for the SDKs, too.
type waits struct {
	usual time.Duration

	mu       sync.Mutex
	limit    time.Duration // which was learned at limitAt
	limitAt  time.Time
	cutAfter time.Duration // of the last cut that came alone or first
	cutAt    time.Time
}

func newWaits(severalAddresses bool) *waits {
	if severalAddresses {
		return &waits{usual: maxWait}
	}
	return &waits{usual: lock.MaxWait}
}

// longest returns the longest wait to ask for.
func (w *waits) longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.limitAt) < limitLasts {
		return w.limit
	}
	return w.usual
}

// cut is called when a wait that was sent at that instant was cut: with 502, 504, or zero if its connection broke. It
// reports whether that was a proxy's limit.
func (w *waits) cut(sent time.Time, status int) bool {
	longest, now := w.longest(), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	after, pause := now.Sub(sent), sent.Sub(w.cutAt)
	isLimit := status == http.StatusGatewayTimeout
	if !isLimit && pause < 0 {
		return false // one crash may have cut both
	}
	isLimit = isLimit || pause <= atOnce && most(after) < w.cutAfter && most(w.cutAfter) < after
	w.cutAfter, w.cutAt = after, now
	if isLimit {
		w.limit, w.limitAt = max(min(most(after), longest), minWait), now
	}
	return isLimit
}

// most returns what may be asked for where a wait was cut after that time.
func most(after time.Duration) time.Duration { return after * 8 / 10 }

// split calls send with the parts of a wait, until send reports that it is done or the wait is over. more reports
// whether there is a further part. A wait that the service refuses as too long is not split.
func (w *waits) split(wait time.Duration, send func(part time.Duration, more bool) (again bool)) {
	until := time.Now().Add(wait)
	for left := wait; ; left = max(time.Until(until), 0) {
		part := left
		if wait <= lock.MaxWait {
			part = min(left, w.longest())
		}
		if !send(part, part < left) || left == 0 {
			return
		}
	}
}
