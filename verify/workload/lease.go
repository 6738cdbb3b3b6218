package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A lease is one that a client was granted.
type lease struct {
	ask   lock.Acquire
	token lock.Token
	slot  int
	ends  time.Time // about
}

// hold acquires a lease, uses it and ends it.
func (c *client) hold(p plan) {
	l, err := c.acquire(p)
	for _, s := range p.steps {
		if err != nil || c.over.Err() != nil {
			break
		}
		c.sleep(s.pause)
		err = c.do(&l, s)
	}
	if err == nil {
		err = c.finish(&l, p)
	}
	if l.token != 0 && !isLost(err) {
		c.remember(l)
	}
}

// acquire acquires, and acquires again if that is what is intended.
func (c *client) acquire(p plan) (lease, error) {
	a := p.ask
	a.Name, a.LeaseID = c.names.forTurn(p.lock), lock.LeaseID(uuid.New())
	a.Holder = fmt.Sprintf("%s c%d #%d", c.Prefix, c.number, c.turn)
	l := lease{ask: a}
	err := c.seek(&l, p.via, p.vanish)
	if p.again && (err == nil || errors.Is(err, lock.ErrHeld) && a.KeepPlace) {
		err = c.seek(&l, p.via+1, stays)
	}
	if errors.Is(err, lock.ErrHeld) && a.KeepPlace {
		return l, errors.Join(err, c.leavePlace(l, p))
	}
	return l, err
}

// leavePlace gives the place up that is kept for a lease, or does not come back to it.
func (c *client) leavePlace(l lease, p plan) error {
	if p.pick%2 == 0 {
		return c.release(l, p.via)
	}
	l.ends = time.Now().Add(lock.PlaceRetention)
	c.loose = append(c.loose, l)
	return nil
}

// seek sends the acquire of a lease.
func (c *client) seek(l *lease, via int, vanish time.Duration) error {
	g, err := ask(c, sending{verify.Acquire, via, l.ask.Wait, vanish}, func(ctx context.Context, s lock.Service) (lock.Grant, error) {
		return s.Acquire(ctx, l.ask)
	})
	if err == nil {
		l.token, l.slot = g.Token, g.Slot
		l.ends = time.Now().Add(g.TTL)
	}
	return err
}

// finish ends a lease as it is intended, or releases it if the run is over.
func (c *client) finish(l *lease, p plan) error {
	switch {
	case c.over.Err() != nil:
	case p.ending == desert:
		c.loose = append(c.loose, *l)
		return nil
	case p.ending == sleep:
		c.sleep(time.Until(l.ends) + p.around)
		if err := c.renew(l, p.steps[0]); isLost(err) {
			return err
		}
	}
	err := c.release(*l, p.via)
	if p.again && !isLost(err) {
		return c.release(*l, p.via+1)
	}
	return err
}

func (c *client) release(l lease, via int) error {
	_, err := ask(c, sending{verify.Release, via, 0, stays}, func(ctx context.Context, s lock.Service) (struct{}, error) {
		return struct{}{}, s.Release(ctx, lock.Release{Name: l.ask.Name, LeaseID: l.ask.LeaseID})
	})
	return err
}

func (c *client) renew(l *lease, s step) error {
	r := lock.Renew{Name: l.ask.Name, LeaseID: l.ask.LeaseID}
	if s.pretend {
		r.TTL = max(l.ask.TTL*3/4, lock.MinTTL).Truncate(time.Millisecond)
	}
	if s.proclaim {
		r.Metadata = json.RawMessage(fmt.Sprintf(`{"turn":%d}`, c.turn))
	}
	g, err := ask(c, sending{verify.Renew, s.via, 0, s.vanish}, func(ctx context.Context, s lock.Service) (lock.Grant, error) {
		return s.Renew(ctx, r)
	})
	if err == nil {
		l.ends = time.Now().Add(g.TTL)
	}
	return err
}

// remember keeps a lease that is over to come back to it, instead of the one that was
// over the longest.
func (c *client) remember(l lease) {
	if len(c.former) == remembered {
		c.former = c.former[1:]
	}
	c.former = append(c.former, l)
}

// comeLate does something with a lease as if it were not over.
func (c *client) comeLate(p plan) {
	if len(c.former) == 0 {
		return
	}
	i := p.pick % len(c.former)
	l, s := c.former[i], p.steps[0]
	var err error
	switch s.verb {
	case verify.Look:
		l.ask.Wait, l.ask.KeepPlace = 0, false
		if err = c.seek(&l, s.via, stays); err == nil {
			err = c.release(l, s.via)
		}
	case verify.ReadFenced:
		err = c.release(l, s.via)
	default:
		err = c.do(&l, s)
	}
	if isLost(err) {
		c.former = append(c.former[:i:i], c.former[i+1:]...)
	}
}
