package guard

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// suspendedFunc returns a function that measures suspensions. The kernel's boot-time clock includes
// them; its monotonic clock, which Go uses, does not.
//
// The monotonic clock, which is subtracted, is read last. The time between the two readings
// therefore makes the result too small, never too large, so the largest result is the best.
func suspendedFunc() func() time.Duration {
	var greatest atomic.Int64
	return func() time.Duration {
		var boot, mono unix.Timespec
		if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
			return 0 // kernels before 2.6.39 have no such clock and always fail
		}
		for d := boot.Nano() - mono.Nano(); ; {
			last := greatest.Load()
			if d <= last || greatest.CompareAndSwap(last, d) {
				return time.Duration(max(d, last))
			}
		}
	}
}
