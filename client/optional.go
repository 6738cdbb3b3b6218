package client

import "time"

// given returns what p points at, zero if the answer did not give it.
func given[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// ifGiven returns nil for zero, which stands for what the caller did not give.
func ifGiven[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// toMs returns d in whole milliseconds, and nil for zero, which stands for a
// duration that is not given.
func toMs(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return new(wholeMs(d))
}

// wholeMs returns d, which is not zero, in whole milliseconds, rounded towards zero.
// It is never zero: less than a millisecond counts as one.
func wholeMs(d time.Duration) int64 {
	if d > 0 {
		return max(d.Milliseconds(), 1)
	}
	return min(d.Milliseconds(), -1)
}

// fromMs returns ms as a duration, cut to those that there can be.
func fromMs(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(ms, 0), most)) * time.Millisecond
}
