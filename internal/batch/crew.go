package batch

import (
	"sync"
	"time"
)

// crewStays is for how long a goroutine of a Crew waits for more to do.
const crewStays = time.Second

// A Crew runs functions beside each other, on goroutines that stay for a while when they
// are done: what is run thousands of times a second finds a stack that has grown already.
// Make one with NewCrew; a nil one keeps none.
type Crew struct {
	jobs      chan func() // received from by those who have nothing to do
	dismissed chan struct{}
	once      sync.Once // closes dismissed
	all       sync.WaitGroup
}

// NewCrew returns a Crew of nobody yet.
func NewCrew() *Crew {
	return &Crew{jobs: make(chan func()), dismissed: make(chan struct{})}
}

// Go has f run at once.
func (c *Crew) Go(f func()) {
	if c == nil {
		go f()
		return
	}
	select {
	case c.jobs <- f:
	default:
		c.all.Go(func() { c.work(f) })
	}
}

// Dismiss has nobody stay any longer, and returns when all have gone. It is called when
// nothing more is to be run, and may be called again.
func (c *Crew) Dismiss() {
	c.once.Do(func() { close(c.dismissed) })
	c.all.Wait()
}

func (c *Crew) work(f func()) {
	stay := time.NewTimer(crewStays)
	defer stay.Stop()
	for {
		f()
		stay.Reset(crewStays)
		select {
		case f = <-c.jobs:
		case <-stay.C:
			return
		case <-c.dismissed:
			return
		}
	}
}
