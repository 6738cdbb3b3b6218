package main

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// ballastSize is the size of an allocation that makes garbage collections of a small heap rarer, in bytes. Go
	// collects when the heap has grown by gcPercent, so a small heap may grow by gcPercent of the ballast before that.
	ballastSize = 256 << 20
	// gcPercent is a quarter of Go's 100, so that thousands of waiting calls, with their stacks, do not have as much garbage
	// again beside them.
	gcPercent = 25
	// crowdPause is the time between two looks at the number of goroutines, and crowdChange by how much it changes until
	// memory is given back.
	crowdPause  = 10 * time.Second
	crowdChange = 2000
)

// tuneGC tunes garbage collections until the returned function is called: there are fewer of them, since a service has
// a small heap and makes much garbage, so that by default a seventh of its time would go into collections. The ballast
// is never touched, so it needs no physical memory. After a crowd of calls has come to wait, or has left, tuneGC collects
// once, and returns what is free to the operating system: they make little garbage after that, so Go would keep the
// memory for minutes. GOGC and GOMEMLIMIT in the environment take precedence.
func tuneGC(env lookup) (done func()) {
	size := ballastFor(env)
	if size == 0 {
		return func() {}
	}
	ballast, percent := make([]byte, size), debug.SetGCPercent(gcPercent)
	stop := make(chan struct{})
	var crowds sync.WaitGroup
	crowds.Go(func() { collectAfterCrowds(stop, runtime.NumGoroutine, debug.FreeOSMemory) })
	return func() {
		close(stop)
		crowds.Wait()
		debug.SetGCPercent(percent)
		runtime.KeepAlive(ballast)
	}
}

// collectAfterCrowds calls collect soon after the number of goroutines has changed by crowdChange or more since the last
// time, until stop is closed.
func collectAfterCrowds(stop <-chan struct{}, goroutines func() int, collect func()) {
	for last := 0; ; {
		select {
		case <-stop:
			return
		case <-time.After(crowdPause):
		}
		if now := goroutines(); max(now-last, last-now) >= crowdChange {
			collect()
			last = now
		}
	}
}

func ballastFor(env lookup) int {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if _, set := env(name); set {
			return 0
		}
	}
	return ballastSize
}
