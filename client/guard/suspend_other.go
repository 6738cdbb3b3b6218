//go:build !linux

package guard

import (
	"sync/atomic"
	"time"
)

// suspendedFunc returns a function that measures suspensions as the difference between the wall
// clock and the monotonic clock. Setting the wall clock forward looks like a suspension and may end
// leases; setting it back hides a suspension of that length.
func suspendedFunc() func() time.Duration {
	var greatest atomic.Int64 // never decreases, because that would extend deadlines
	begun := time.Now()
	return func() time.Duration {
		now := time.Now()
		for d := int64(now.Round(0).Sub(begun.Round(0)) - now.Sub(begun)); ; {
			last := greatest.Load()
			if d <= last || greatest.CompareAndSwap(last, d) {
				return time.Duration(max(d, last))
			}
		}
	}
}
