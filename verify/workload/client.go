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

// remembered is how many leases that are over a client comes back to.
const remembered = 8

// A client does one turn after the other.
type client struct {
	*run
	number int
	turn   int
	ways   []lock.Service // to the services, each recorded
	former []lease
	loose  []lease // leases and places that were left without a word
	stats  Stats
	biding bool // whether it tries the lock of a lull
}

// work does turns until the run is over, and then lets go of all.
func (c *client) work() {
	for ; c.over.Err() == nil; c.turn++ {
		p := c.draw(c.number, c.turn)
		switch p.turn {
		case hold:
			c.hold(p)
		case late:
			c.comeLate(p)
		case look:
			c.look(p)
		case oust:
			c.oust(p)
		}
		c.sleep(p.rest)
		c.loose = slices.DeleteFunc(c.loose, func(l lease) bool { return time.Now().After(l.ends.Add(l.ask.Grace)) })
	}
	for _, l := range c.loose {
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
type sending struct {
	verb   verify.Verb
	via    int
	wait   time.Duration // how long the service may take to answer, besides
	vanish time.Duration // after which nobody waits for the first answer; or stays
}

// lastPatience is the patience when the run is over.
const lastPatience = 3 * time.Second

// ask makes a call, and makes it again while it is not known what became of it and the
// patience lasts; an acquire only for as long as it was not given up by its client.
func ask[T any](c *client, s sending, do func(context.Context, lock.Service) (T, error)) (T, error) {
	began := time.Now()
	for n := 0; ; n++ {
		c.bide()
		s.via = (s.via + n%2) % len(c.ways)
		got, gone, err := try(c, s, do)
		patience := c.Patience
		if c.over.Err() != nil {
			patience = min(patience, lastPatience)
		}
		if !isLost(err) || s.verb == verify.Acquire && (gone || c.Fickle && s.wait > 0) || time.Since(began) >= patience {
			return got, err
		}
		s.vanish = stays
		c.stats.Again++
		c.pauseAfter(err)
	}
}

// try makes the call once. It returns whether its client has gone before it was
// answered.
func try[T any](c *client, s sending, do func(context.Context, lock.Service) (T, error)) (T, bool, error) {
	ctx, cancel := context.WithTimeout(c.base, s.wait+c.Answer)
	defer cancel()
	if s.vanish >= 0 {
		defer time.AfterFunc(s.vanish, cancel).Stop()
	}
	c.spend()
	got, err := do(ctx, c.ways[s.via])
	c.stats.count(s.verb, err)
	c.judge(s.verb, s.via, err)
	return got, ctx.Err() != nil, err
}

// pauseAfter waits before a call is sent again, for as long as the service asks for if
// it is asked too often.
func (c *client) pauseAfter(err error) {
	pause := 25*time.Millisecond + rand.N(200*time.Millisecond)
	if e := (*lock.Error)(nil); errors.As(err, &e) && e.Code == lock.ErrRateLimited {
		pause = max(pause, min(e.RetryAfter, c.Patience))
	}
	time.Sleep(pause)
}
