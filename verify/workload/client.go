package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// maxFormer is how many leases that are over a client comes back to.
const maxFormer = 8

// A client does one turn after the other.
type client struct {
	*run
	number    int
	turn      int
	services  []lock.Service // to the services, each recorded
	former    []lease
	abandoned []lease // leases and places that were left without a word
	stats     Stats
	inLull    bool // whether it tries the lock of a lull
}

// takeTurns does turns until the run is over, and then lets go of all.
func (c *client) takeTurns() {
	for ; c.over.Err() == nil; c.turn++ {
		p := c.draw(c.number, c.turn)
		switch p.kind {
		case useLease:
			c.useLease(p)
		case useEnded:
			c.useEndedLease(p)
		case readLock:
			c.readLock(p)
		case revoke:
			c.revoke(p)
		}
		c.sleep(p.rest)
		c.abandoned = slices.DeleteFunc(c.abandoned, func(l lease) bool { return time.Now().After(l.ends.Add(l.acquire.Grace)) })
	}
	for _, l := range c.abandoned {
		_ = c.release(l, 0) // nobody rests on the answer; it is recorded
	}
}

// sleep sleeps, unless the run is over before.
func (c *client) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.over.Done():
	}
}

// How a call is sent.
type callOptions struct {
	verb        verify.Verb
	via         int
	wait        time.Duration // how long the service may take to answer, besides
	cancelAfter time.Duration // after which nobody waits for the first answer; or stays
}

// finalRetryFor is the patience when the run is over.
const finalRetryFor = 3 * time.Second

// callWithRetries makes a call, and makes it again while it is not known what became of it and the
// patience lasts; an acquire only for as long as it was not given up by its client.
func callWithRetries[T any](c *client, s callOptions, do func(context.Context, lock.Service) (T, error)) (T, error) {
	began := time.Now()
	for n := 0; ; n++ {
		c.joinLull()
		s.via = (s.via + n%2) % len(c.services)
		got, gone, err := callOnce(c, s, do)
		patience := c.RetryFor
		if c.over.Err() != nil {
			patience = min(patience, finalRetryFor)
		}
		if !isLost(err) || s.verb == verify.Acquire && (gone || c.AbandonLostWaits && s.wait > 0) || time.Since(began) >= patience {
			return got, err
		}
		s.cancelAfter = never
		c.stats.Retries++
		c.pauseAfter(err)
	}
}

// callOnce makes the call once. It returns whether its client has gone before it was
// answered.
func callOnce[T any](c *client, s callOptions, do func(context.Context, lock.Service) (T, error)) (T, bool, error) {
	ctx, cancel := context.WithTimeout(c.base, s.wait+c.AnswerTimeout)
	defer cancel()
	if s.cancelAfter >= 0 {
		defer time.AfterFunc(s.cancelAfter, cancel).Stop()
	}
	c.countCall()
	got, err := do(ctx, c.services[s.via])
	c.stats.count(s.verb, err)
	c.checkAnswer(s.verb, s.via, err)
	return got, ctx.Err() != nil, err
}

// pauseAfter waits before a call is sent again, for as long as the service asks for if
// it is asked too often.
func (c *client) pauseAfter(err error) {
	pause := 25*time.Millisecond + rand.N(200*time.Millisecond)
	if e := (*lock.Error)(nil); errors.As(err, &e) && e.Code == lock.ErrRateLimited {
		pause = max(pause, min(e.RetryAfter, c.RetryFor))
	}
	time.Sleep(pause)
}
