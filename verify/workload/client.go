package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// maxFormer is how many ended leases a client remembers.
const maxFormer = 8

// A client takes one turn after the other.
type client struct {
	*run
	number    int
	turn      int
	services  []paddock.Service // recorded, in the order of Options.Services
	former    []lease
	abandoned []lease // leases and places that were left without a release
	stats     Stats
	inLull    bool // reports whether the client takes part in a lull
}

// takeTurns takes turns until the run is over, and then releases what is left.
func (c *client) takeTurns() {
	for ; c.over.Err() == nil; c.turn++ {
		p := c.draw(c.number, c.turn)
		switch p.kind {
		case useLease:
			if !p.opposite || !c.useOpposite(p) {
				c.useLease(p)
			}
		case useEnded:
			c.useEndedLease(p)
		case readLock:
			c.readLock(p)
		case revoke:
			c.revoke(p)
		}
		c.sleep(p.rest)
		c.abandoned = slices.DeleteFunc(c.abandoned,
			func(l lease) bool { return time.Now().After(l.ends.Add(l.acquire.Grace)) })
	}
	for _, l := range c.abandoned {
		_ = c.release(l, 0) // only the record of the answer matters
	}
}

// sleep sleeps for d or until the run is over.
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

// callOptions say how a call is sent.
type callOptions struct {
	verb        verify.Verb
	via         int
	wait        time.Duration // added to the time in which the service must answer
	cancelAfter time.Duration // when the first attempt is cancelled, or never
}

// finalRetryFor is how long a call is retried once the run is over.
const finalRetryFor = 3 * time.Second

// callWithRetries makes a call and retries it while its outcome is unknown, for up to RetryFor. An
// acquire that its client cancelled is not retried.
func callWithRetries[T any](c *client, s callOptions, do func(context.Context, paddock.Service) (T, error)) (T, error) {
	began := time.Now()
	for n := 0; ; n++ {
		c.joinLull()
		s.via = (s.via + n%2) % len(c.services)
		got, cancelled, err := callOnce(c, s, do)
		retryFor := c.RetryFor
		if c.over.Err() != nil {
			retryFor = min(retryFor, finalRetryFor)
		}
		if !isLost(err) || s.verb == verify.Acquire && (cancelled || c.AbandonLostWaits && s.wait > 0) ||
			time.Since(began) >= retryFor {
			return got, err
		}
		s.cancelAfter = never
		c.stats.Retries++
		c.pauseAfter(err)
	}
}

// callOnce makes the call once. It reports whether the client cancelled it before it was answered.
func callOnce[T any](c *client, s callOptions, do func(context.Context, paddock.Service) (T, error)) (T, bool, error) {
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

// pauseAfter waits before a retry, for as long as a rate-limited answer asks for.
func (c *client) pauseAfter(err error) {
	pause := 25*time.Millisecond + rand.N(200*time.Millisecond)
	if e := (*lock.Error)(nil); errors.As(err, &e) && e.Code == lock.ErrRateLimited {
		pause = max(pause, min(e.RetryAfter, c.RetryFor))
	}
	time.Sleep(pause)
}
