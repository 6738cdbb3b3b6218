package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// unknownTokenOffset is by how much a token is beyond all that were granted.
const unknownTokenOffset = 1 << 40

// do does a step with a lease, and does it again if that is intended. It returns an
// error if the client must not go on with the lease.
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

// write writes a resource under the token of the lease, or under one that is none.
func (c *client) write(l *lease, s step) error {
	w := lock.FencedWrite{
		Key: keyOf(l.acquire.Name, l.acquire.Mode, l.slot, s.key), Lock: l.acquire.Name, Token: c.tokenFor(l, s),
		Value: json.RawMessage(fmt.Sprintf(`"c%d #%d"`, c.number, c.turn)),
	}
	if l.acquire.Mode == lock.Permit {
		w.Slot = l.slot
	}
	if s.conditional {
		f, err := c.readFenced(w.Key, s)
		if err != nil && !errors.Is(err, lock.ErrNotFound) {
			return err
		}
		if s.variant {
			f.Version++ // as somebody who has read it wrong
		}
		w.IfVersion = &f.Version
		c.sleep(s.pause)
	}
	_, err := callWithRetries(c, callOptions{verify.WriteFenced, s.via, 0, s.cancelAfter}, func(ctx context.Context, s lock.Service) (lock.FencedValue, error) {
		return s.WriteFenced(ctx, w)
	})
	if s.wrongToken || errors.Is(err, lock.ErrVersionMismatch) {
		return nil
	}
	return err
}

// tokenFor returns the token of the lease; or, to pretend, one of a lease before it, or
// one that was never granted.
func (c *client) tokenFor(l *lease, s step) lock.Token {
	if !s.wrongToken {
		return l.token
	}
	if s.key == 0 {
		return l.token + unknownTokenOffset
	}
	for _, before := range c.former {
		if before.acquire.Name == l.acquire.Name && before.token < l.token {
			return before.token
		}
	}
	return max(l.token-1, 1)
}

func (c *client) readFencedStep(l *lease, s step) error {
	if _, err := c.readFenced(keyOf(l.acquire.Name, l.acquire.Mode, l.slot, s.key), s); !errors.Is(err, lock.ErrNotFound) {
		return err
	}
	return nil
}

func (c *client) readFenced(key string, s step) (lock.FencedValue, error) {
	return callWithRetries(c, callOptions{verify.ReadFenced, s.via, 0, never}, func(ctx context.Context, s lock.Service) (lock.FencedValue, error) {
		return s.ReadFenced(ctx, key)
	})
}

func (c *client) verify(l *lease, s step) error {
	v := lock.Verify{Name: l.acquire.Name, Token: c.tokenFor(l, s)}
	if s.conditional {
		v.Slot = &l.slot
	}
	_, err := callWithRetries(c, callOptions{verify.VerifyToken, s.via, 0, s.cancelAfter}, func(ctx context.Context, s lock.Service) (lock.Verification, error) {
		return s.VerifyToken(ctx, v)
	})
	return err
}

func (c *client) readStep(l *lease, s step) error {
	_, err := c.read(l.acquire.Name, s.via)
	return err
}

func (c *client) read(name string, via int) (lock.Lock, error) {
	return callWithRetries(c, callOptions{verify.ReadLock, via, 0, never}, func(ctx context.Context, s lock.Service) (lock.Lock, error) {
		return s.Lock(ctx, name)
	})
}

// readLock looks at a lock, and then at the newest token that it saw there.
func (c *client) readLock(p plan) {
	seen, err := c.read(c.names.forTurn(p.lock), p.via)
	if err != nil || seen.Token == 0 {
		return
	}
	// Nobody rests on the answer; it is recorded.
	_ = c.verify(&lease{acquire: lock.Acquire{Name: seen.Name}, token: seen.Token}, step{via: p.via + 1, cancelAfter: never})
}

// revoke revokes one of the leases that it sees, also one that was revoked and is in its
// grace. Mostly it leaves the grace.
func (c *client) revoke(p plan) {
	seen, err := c.read(c.names.forTurn(p.lock), p.via)
	if err != nil || len(seen.Leases) == 0 {
		return
	}
	victim, s := seen.Leases[p.pick%len(seen.Leases)], p.steps[0]
	r := lock.Revoke{
		Name: seen.Name, Token: victim.Token, Reason: fmt.Sprintf("%s c%d #%d", c.Prefix, c.number, c.turn), SkipGrace: s.variant,
	}
	if s.conditional {
		r.Slot = &victim.Slot
	}
	if s.wrongToken {
		r.AcquiredAt = victim.AcquiredAt
	}
	for n := range 2 {
		_, err := callWithRetries(c, callOptions{verify.Revoke, p.via + n, 0, s.cancelAfter}, func(ctx context.Context, s lock.Service) (lock.Lock, error) {
			return s.Revoke(ctx, r)
		})
		if err != nil || !s.repeat {
			return
		}
	}
}
