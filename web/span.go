package web

import (
	"fmt"
	"time"
)

// A timeLeft is time that runs down.
type timeLeft time.Duration

// Millis returns the span in whole milliseconds, for the script to count down.
func (s timeLeft) Millis() int64 { return max(time.Duration(s).Milliseconds(), 0) }

// String returns the span in words, with a second that has begun counted in full.
func (s timeLeft) String() string {
	ms := s.Millis()
	if ms == 0 {
		return "ended"
	}
	return words(time.Duration((ms+999)/1000) * time.Second)
}

// An elapsed is time that grows.
type elapsed time.Duration

// Millis returns the age in whole milliseconds, for the script to count on.
func (a elapsed) Millis() int64 { return max(time.Duration(a).Milliseconds(), 0) }

// String returns the age in words, in seconds that are full.
func (a elapsed) String() string { return words(time.Duration(a)) }

// words returns a length of time in its two greatest units. The script has the same rule.
func words(d time.Duration) string {
	switch s := max(int64(d/time.Second), 0); {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s%86400/3600)
	}
}
