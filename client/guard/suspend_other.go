//go:build !linux

package guard

import "time"

// suspension returns what measures suspensions by how much farther the wall clock went than
// the monotonic one. A wall clock that is put forward looks the same, and costs a
// lease; one that is put back hides as much of a suspension.
func suspension() func() time.Duration {
	begun := time.Now()
	return func() time.Duration {
		now := time.Now()
		return max(now.Round(0).Sub(begun.Round(0))-now.Sub(begun), 0)
	}
}
