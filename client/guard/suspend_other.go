//go:build !linux

package guard

import (
	"sync/atomic"
	"time"
)

// suspendedFunc returns what measures suspensions by how much farther the wall clock went than
// the monotonic one. A wall clock that is put forward looks the same, and costs a
// lease; one that is put back hides as much of a suspendedFunc.
func suspendedFunc() func() time.Duration {
	var greatest atomic.Int64 // were it to go back, deadlines would be that much later
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
