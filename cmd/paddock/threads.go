package main

import (
	"context"
	"runtime"
	"time"
)

const (
	// threadsInterval is how often the number of threads that run Go code is reconsidered.
	threadsInterval = 200 * time.Millisecond
	// busyShare is the share of one core above which a process with one thread gets all of them.
	busyShare = 0.5
	// idleShare is the share of one core below which a process is idle, and idleIntervals is for how many intervals it
	// must be idle until it has one thread.
	idleShare     = 0.4
	idleIntervals = 5
)

// adjustThreads runs Go code on one thread while there is little to do, until ctx ends. Each goroutine that becomes
// ready wakes an idle thread, which finds nothing: at some thousand calls a second that is a third of the process's
// time. Only a process that may use several threads by default is adjusted; GOMAXPROCS in the environment takes
// precedence.
func adjustThreads(ctx context.Context, env lookup) {
	if _, set := env("GOMAXPROCS"); set || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	defer runtime.SetDefaultGOMAXPROCS()
	var t threads
	used, at := processTime(), time.Now()
	ticker := time.NewTicker(threadsInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		nowUsed, now := processTime(), time.Now()
		switch single := t.single; t.next(float64(nowUsed-used) / float64(now.Sub(at))) {
		case single:
		case true:
			runtime.GOMAXPROCS(1)
		case false:
			runtime.SetDefaultGOMAXPROCS()
		}
		used, at = nowUsed, now
	}
}

// threads decides how many threads run Go code.
type threads struct {
	single bool // one; otherwise all
	idle   int  // intervals in a row
}

// next returns whether one thread is enough from now on. share is how much of one core the process used in the last
// interval.
func (t *threads) next(share float64) (single bool) {
	if share < idleShare {
		t.idle++
	} else {
		t.idle = 0
	}
	switch {
	case share > busyShare:
		t.single = false
	case t.idle >= idleIntervals:
		t.single = true
	}
	return t.single
}
