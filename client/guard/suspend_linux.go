package guard

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// suspendedFunc returns what measures suspensions: the kernel's boot-time clock goes on
// in them, its monotonic clock, which is Go's, does not.
//
// The two are read one after the other, the one that is subtracted last. So what
// passes between the readings makes the result less than it is, never more, and the
// greatest seen is the best.
func suspendedFunc() func() time.Duration {
	var greatest atomic.Int64
	return func() time.Duration {
		var boot, mono unix.Timespec
		if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
			return 0 // a kernel from before 2.6.39 has no such clock, and always says so
		}
		for d := boot.Nano() - mono.Nano(); ; {
			last := greatest.Load()
			if d <= last || greatest.CompareAndSwap(last, d) {
				return time.Duration(max(d, last))
			}
		}
	}
}
