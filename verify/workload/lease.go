package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A lease is one that a client was granted, or the leases of a set, which begin and end together.
type lease struct {
	acquire lock.Acquire
	held    []heldLock // ordered by name; nil until they are granted
	ends    time.Time  // estimate
	closed  lock.Closing
}

// A heldLock is a lock, and what a client was granted of it.
type heldLock struct {
	name  string
	mode  lock.Mode
	token lock.Token
	slots []int
	slot  int // of these, the one that a step is about
}

// granted records the answer to the acquire.
func (l *lease) granted(g lock.Grant) {
	l.held = nil
	for _, m := range g.Leases {
		l.held = append(l.held, heldLock{m.Name, m.Mode, m.Token, m.Slots.All(m.Slot), m.Slot})
	}
	l.ends = time.Now().Add(g.TTL)
}

// at returns the lock that the step is about, with one of its slots.
func (l *lease) at(s step) heldLock {
	h := l.held[s.member%len(l.held)]
	if len(h.slots) > 0 {
		h.slot = h.slots[s.member/len(l.held)%len(h.slots)]
	}
	return h
}

// useLease acquires a lease, uses it and ends it.
func (c *client) useLease(p plan) {
	l, err := c.acquire(p)
	for _, s := range p.steps {
		if err != nil || c.over.Err() != nil {
			break
		}
		c.sleep(s.pause)
		err = c.do(&l, s)
	}
	if err == nil {
		err = c.end(&l, p)
	}
	if l.held != nil && !isLost(err) {
		c.remember(l)
	}
}

// acquire acquires a lease, twice if the plan says so. If the plan cancels the call, the client returns to its place or
// gives it up.
func (c *client) acquire(p plan) (lease, error) {
	a, own := p.acquire, p.acquire.Locks[0]
	own.Name, a.Locks, a.LeaseID = c.names.forTurn(p.lock), nil, lock.LeaseID(uuid.New())
	a.Holder = fmt.Sprintf("%s c%d #%d", c.Prefix, c.number, c.turn)
	for _, o := range p.others {
		m := o.as
		m.Name = c.names.forTurn(o.lock)
		a.Locks = append(a.Locks, m)
	}
	a.Locks = append(a.Locks, own)
	l := lease{acquire: a, closed: p.closed}
	if p.session {
		if err := c.openSession(&l, p.via); err != nil {
			return l, err
		}
	}
	err := c.sendAcquire(&l, p.via, p.cancelAfter)
	if p.cancelAfter != never && isLost(err) {
		if p.pick%2 == 0 {
			return l, errors.Join(err, c.release(l, p.via)) // it does not return
		}
		err = c.sendAcquire(&l, p.via+1, never)
	}
	refused := errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrFrozen)
	if p.repeat && (err == nil || refused && a.KeepPlace) {
		err = c.sendAcquire(&l, p.via+1, never)
		refused = errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrFrozen)
	}
	if refused && a.KeepPlace {
		return l, errors.Join(err, c.leaveQueue(l, p))
	}
	return l, err
}

// leaveQueue gives up a kept place, either by a release or by not returning to it.
func (c *client) leaveQueue(l lease, p plan) error {
	if p.pick%2 == 0 {
		return c.release(l, p.via)
	}
	l.ends = time.Now().Add(lock.PlaceRetention)
	c.abandoned = append(c.abandoned, l)
	return nil
}

// sendAcquire sends the acquire of a lease.
func (c *client) sendAcquire(l *lease, via int, vanish time.Duration) error {
	g, err := callWithRetries(c, callOptions{verify.Acquire, via, l.acquire.Wait, vanish},
		func(ctx context.Context, s paddock.Service) (lock.Grant, error) {
			return s.Acquire(ctx, l.acquire)
		})
	if err == nil {
		l.granted(g)
	}
	return err
}

// end ends a lease as planned, or releases it if the run is over.
func (c *client) end(l *lease, p plan) error {
	switch {
	case c.over.Err() != nil:
	case p.end == abandon:
		c.abandoned = append(c.abandoned, *l)
		return nil
	case p.end == sleep:
		c.sleep(time.Until(l.ends) + p.wakeOffset)
		if err := c.renew(l, p.steps[0]); isLost(err) {
			return err
		}
	}
	if l.acquire.SessionID.Ref() != 0 && p.pick%2 == 0 {
		return c.closeSession(*l, p.via)
	}
	if s := p.steps[0]; s.part && len(l.held) > 1 { // refused, unless the leases have ended
		if err := c.sendRelease(lock.Release{Locks: []string{l.at(s).name}, LeaseID: l.acquire.LeaseID}, p.via); isLost(err) {
			return err
		}
	}
	err := c.release(*l, p.via)
	if p.repeat && !isLost(err) {
		return c.release(*l, p.via+1)
	}
	return err
}

func (c *client) release(l lease, via int) error {
	r := lock.Release{Locks: l.acquire.Names(), LeaseID: l.acquire.LeaseID}
	if l.held != nil { // only the release of a lease closes its lock
		r.Closed = l.closed
	}
	return c.sendRelease(r, via)
}

func (c *client) sendRelease(r lock.Release, via int) error {
	_, err := callWithRetries(c, callOptions{verify.Release, via, 0, never},
		func(ctx context.Context, s paddock.Service) (struct{}, error) {
			return struct{}{}, s.Release(ctx, r)
		})
	return err
}

func (c *client) renew(l *lease, s step) error {
	if l.acquire.SessionID.Ref() != 0 && !s.variant {
		return c.renewSession(l, s)
	}
	r := lock.Renew{Locks: l.acquire.Names(), LeaseID: l.acquire.LeaseID}
	if s.part && len(l.held) > 1 {
		r.Locks = []string{l.at(s).name}
	}
	if s.wrongToken && l.acquire.SessionID.Ref() == 0 {
		r.TTL = max(l.acquire.TTL*3/4, lock.MinTTL).Truncate(time.Millisecond)
	}
	if s.variant {
		r.Metadata = json.RawMessage(fmt.Sprintf(`{"turn":%d}`, c.turn))
	}
	g, err := callWithRetries(c, callOptions{verify.Renew, s.via, 0, s.cancelAfter},
		func(ctx context.Context, s paddock.Service) (lock.Grant, error) {
			return s.Renew(ctx, r)
		})
	if errors.Is(err, lock.ErrLeaseInSet) {
		return nil // nothing has changed
	}
	if err == nil && l.acquire.SessionID.Ref() == 0 {
		l.ends = time.Now().Add(g.TTL)
	}
	return err
}

// remember keeps an ended lease for later turns. It replaces the oldest.
func (c *client) remember(l lease) {
	if len(c.former) == maxFormer {
		c.former = c.former[1:]
	}
	c.former = append(c.former, l)
}

// useEndedLease uses an ended lease as if it were still held.
func (c *client) useEndedLease(p plan) {
	if len(c.former) == 0 {
		return
	}
	i := p.pick % len(c.former)
	l, s := c.former[i], p.steps[0]
	var err error
	switch s.verb {
	case verify.ReadLock:
		l.acquire.Wait, l.acquire.KeepPlace = 0, false
		if err = c.sendAcquire(&l, s.via, never); err == nil {
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
