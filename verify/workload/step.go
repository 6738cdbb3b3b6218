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

// unknownTokenOffset makes a token greater than any that was granted.
const unknownTokenOffset = 1 << 40

// turnsOfOperation is the number of turns in which all clients write the same operation, once for each key.
const turnsOfOperation = 4

// do makes the call of a step, twice if planned. It returns an error if the client must not use the
// lease any longer.
func (c *client) do(l *lease, s step) error {
	once := map[verify.Verb]func(*lease, step) error{
		verify.Renew: c.renew, verify.WriteFenced: c.write, verify.VerifyToken: c.verify,
		verify.ReadFenced: c.readFencedStep, verify.ReadLock: c.readStep,
	}[s.verb]
	err := once(l, s)
	if s.repeat && err == nil {
		s.via, s.cancelAfter = s.via+1, never
		err = once(l, s)
	}
	return err
}

// write writes a resource under the lease's token, or under a wrong one.
func (c *client) write(l *lease, s step) error {
	h := l.at(s)
	w := lock.FencedWrite{
		Key: keyOf(h.name, h.mode, h.slot, s.key), Lock: h.name, Token: c.tokenFor(h, s),
		Value: json.RawMessage(fmt.Sprintf(`"c%d #%d"`, c.number, c.turn)),
	}
	if h.mode == lock.Permit {
		w.Slot = h.slot
	}
	if s.operation {
		w.OperationID = fmt.Sprintf("turns %d", c.turn/turnsOfOperation)
	}
	if s.conditional {
		f, err := c.readFenced(w.Key, s)
		if err != nil && !errors.Is(err, lock.ErrNotFound) {
			return err
		}
		if s.variant {
			f.Version++ // a version that does not exist
		}
		w.IfVersion = &f.Version
		c.sleep(s.pause)
	}
	_, err := callWithRetries(c, callOptions{verify.WriteFenced, s.via, 0, s.cancelAfter},
		func(ctx context.Context, s paddock.Service) (lock.FencedValue, error) {
			return s.WriteFenced(ctx, w)
		})
	if s.wrongToken || errors.Is(err, lock.ErrVersionMismatch) {
		return nil
	}
	return err
}

// tokenFor returns the token for the lock; for a wrong one, that of an earlier lease or one never granted.
func (c *client) tokenFor(h heldLock, s step) lock.Token {
	if !s.wrongToken {
		return h.token
	}
	if s.key == 0 {
		return h.token + unknownTokenOffset
	}
	for _, l := range c.former {
		for _, before := range l.held {
			if before.name == h.name && before.token < h.token {
				return before.token
			}
		}
	}
	return max(h.token-1, 1)
}

func (c *client) readFencedStep(l *lease, s step) error {
	h := l.at(s)
	if _, err := c.readFenced(keyOf(h.name, h.mode, h.slot, s.key), s); !errors.Is(err,
		lock.ErrNotFound) {
		return err
	}
	return nil
}

func (c *client) readFenced(key string, s step) (lock.FencedValue, error) {
	return callWithRetries(c, callOptions{verify.ReadFenced, s.via, 0, never},
		func(ctx context.Context, s paddock.Service) (lock.FencedValue, error) {
			return s.ReadFenced(ctx, key)
		})
}

func (c *client) verify(l *lease, s step) error {
	h := l.at(s)
	v := lock.Verify{Name: h.name, Token: c.tokenFor(h, s)}
	if s.conditional {
		v.Slot = &h.slot
	}
	_, err := callWithRetries(c, callOptions{verify.VerifyToken, s.via, 0, s.cancelAfter},
		func(ctx context.Context, s paddock.Service) (lock.Verification, error) {
			return s.VerifyToken(ctx, v)
		})
	return err
}

func (c *client) readStep(l *lease, s step) error {
	_, err := c.read(l.at(s).name, s.via)
	return err
}

func (c *client) read(name string, via int) (lock.Lock, error) {
	return callWithRetries(c, callOptions{verify.ReadLock, via, 0, never},
		func(ctx context.Context, s paddock.Service) (lock.Lock, error) {
			return s.Lock(ctx, name)
		})
}

// readLock reads a lock and verifies the newest token that it shows.
func (c *client) readLock(p plan) {
	seen, err := c.read(c.names.forTurn(p.lock), p.via)
	if err != nil || seen.Token == 0 {
		return
	}
	// Only the record of the answer matters.
	_ = c.verify(&lease{held: []heldLock{{name: seen.Name, token: seen.Token}}},
		step{via: p.via + 1, cancelAfter: never})
}

// revoke revokes one of the leases that a read shows, possibly one that is revoked and in its
// grace. Mostly it leaves the grace.
func (c *client) revoke(p plan) {
	seen, err := c.read(c.names.forTurn(p.lock), p.via)
	if err != nil || len(seen.Leases) == 0 {
		return
	}
	victim, s := seen.Leases[p.pick%len(seen.Leases)], p.steps[0]
	r := lock.Revoke{
		Name: seen.Name, Token: victim.Token, Reason: fmt.Sprintf("%s c%d #%d", c.Prefix, c.number, c.turn),
		SkipGrace: s.variant,
	}
	if s.conditional {
		all := victim.Slots.All(victim.Slot)
		r.Slot = &all[s.member%len(all)]
	}
	if s.wrongToken {
		if r.AcquiredAt = victim.AcquiredAt; s.conditional {
			r.AcquiredAt = r.AcquiredAt.Add(-time.Microsecond) // of another lease
		}
	}
	for n := range 2 {
		_, err := callWithRetries(c, callOptions{verify.Revoke, p.via + n, 0, s.cancelAfter},
			func(ctx context.Context, s paddock.Service) (lock.Lock, error) {
				return s.Revoke(ctx, r)
			})
		if err != nil || !s.repeat {
			return
		}
	}
}

// lullLasts is the length of a lull.
const lullLasts = 400 * time.Millisecond

// A lull is a time in which clients only try to acquire one lock that is held. Refused calls draw ids
// and tokens in transactions that are rolled back, so nothing is flushed. A crash of the database at
// that time can take back what readers were shown.
type lull struct {
	number int
	ends   time.Time
}

// lullAt returns the lull at that time, false if there is none.
func (r *run) lullAt(now time.Time) (lull, bool) {
	l := r.lull.Load()
	if l == nil || !now.Before(l.ends) {
		return lull{}, false
	}
	return *l, true
}

// beginLulls starts a lull for each value of Lulls until the run is over.
func (r *run) beginLulls() {
	for n := 1; ; n++ {
		select {
		case <-r.Lulls:
			r.lull.Store(&lull{n, time.Now().Add(lullLasts)})
		case <-r.over.Done():
			return
		}
	}
}

// joinLull tries to acquire the lock of the current lull, if any, until the lull is over. The client that
// is granted the lock holds it until then.
func (c *client) joinLull() {
	now, on := c.lullAt(time.Now())
	if !on || c.inLull {
		return
	}
	c.inLull = true
	defer func() { c.inLull = false }()
	l := lease{acquire: lock.Acquire{
		Locks: lock.One(fmt.Sprintf("%s:lull.%d", c.Prefix, now.number)), LeaseID: lock.LeaseID(uuid.New()),
		Holder: fmt.Sprintf("%s c%d lull %d", c.Prefix, c.number, now.number),
		TTL:    c.TTL * 3 / 2,
	}}
	for n := c.number; c.over.Err() == nil && time.Now().Before(now.ends); n++ {
		if err := c.sendAcquire(&l, n, never); err == nil {
			c.sleep(time.Until(now.ends))
			_ = c.release(l, n) // the answer is recorded; if it is lost, the lease expires
			return
		}
		c.sleep(time.Duration(4+n%8) * time.Millisecond)
	}
}
