package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// far is by how much a token is beyond all that were granted.
const far = 1 << 40

// do does a step with a lease, and does it again if that is intended. It returns an
// error if the client must not go on with the lease.
func (c *client) do(l *lease, s step) error {
	once := map[verify.Verb]func(*lease, step) error{
		verify.Renew: c.renew, verify.WriteFenced: c.write, verify.VerifyToken: c.verify,
		verify.ReadFenced: c.read, verify.Look: c.see,
	}[s.verb]
	err := once(l, s)
	if s.again && err == nil {
		s.via, s.vanish = s.via+1, stays
		err = once(l, s)
	}
	return err
}

// write writes a resource under the token of the lease, or under one that is none.
func (c *client) write(l *lease, s step) error {
	w := lock.FencedWrite{
		Key: keyOf(l.ask.Name, l.ask.Mode, l.slot, s.key), Lock: l.ask.Name, Token: c.tokenFor(l, s),
		Value: json.RawMessage(fmt.Sprintf(`"c%d #%d"`, c.number, c.turn)),
	}
	if l.ask.Mode == lock.Permit {
		w.Slot = l.slot
	}
	if s.careful {
		f, err := c.fenced(w.Key, s)
		if err != nil && !errors.Is(err, lock.ErrNotFound) {
			return err
		}
		if s.proclaim {
			f.Version++ // as somebody who has read it wrong
		}
		w.IfVersion = &f.Version
		c.sleep(s.pause)
	}
	_, err := ask(c, sending{verify.WriteFenced, s.via, 0, s.vanish}, func(ctx context.Context, s lock.Service) (lock.FencedValue, error) {
		return s.WriteFenced(ctx, w)
	})
	if s.pretend || errors.Is(err, lock.ErrVersionMismatch) {
		return nil
	}
	return err
}

// tokenFor returns the token of the lease; or, to pretend, one of a lease before it, or
// one that was never granted.
func (c *client) tokenFor(l *lease, s step) lock.Token {
	if !s.pretend {
		return l.token
	}
	if s.key == 0 {
		return l.token + far
	}
	for _, before := range c.former {
		if before.ask.Name == l.ask.Name && before.token < l.token {
			return before.token
		}
	}
	return max(l.token-1, 1)
}

func (c *client) read(l *lease, s step) error {
	if _, err := c.fenced(keyOf(l.ask.Name, l.ask.Mode, l.slot, s.key), s); !errors.Is(err, lock.ErrNotFound) {
		return err
	}
	return nil
}

func (c *client) fenced(key string, s step) (lock.FencedValue, error) {
	return ask(c, sending{verify.ReadFenced, s.via, 0, stays}, func(ctx context.Context, s lock.Service) (lock.FencedValue, error) {
		return s.ReadFenced(ctx, key)
	})
}

func (c *client) verify(l *lease, s step) error {
	v := lock.Verify{Name: l.ask.Name, Token: c.tokenFor(l, s)}
	if s.careful {
		v.Slot = &l.slot
	}
	_, err := ask(c, sending{verify.VerifyToken, s.via, 0, s.vanish}, func(ctx context.Context, s lock.Service) (lock.Verification, error) {
		return s.VerifyToken(ctx, v)
	})
	return err
}

func (c *client) see(l *lease, s step) error {
	_, err := c.lookAt(l.ask.Name, s.via)
	return err
}

func (c *client) lookAt(name string, via int) (lock.Lock, error) {
	return ask(c, sending{verify.Look, via, 0, stays}, func(ctx context.Context, s lock.Service) (lock.Lock, error) {
		return s.Lock(ctx, name)
	})
}

// look looks at a lock, and then at the newest token that it saw there.
func (c *client) look(p plan) {
	seen, err := c.lookAt(c.names.forTurn(p.lock), p.via)
	if err != nil || seen.Token == 0 {
		return
	}
	// Nobody rests on the answer; it is recorded.
	_ = c.verify(&lease{ask: lock.Acquire{Name: seen.Name}, token: seen.Token}, step{via: p.via + 1, vanish: stays})
}

// oust revokes one of the leases that it sees, also one that was revoked and is in its
// grace. Mostly it leaves the grace.
func (c *client) oust(p plan) {
	seen, err := c.lookAt(c.names.forTurn(p.lock), p.via)
	if err != nil || len(seen.Leases) == 0 {
		return
	}
	victim, s := seen.Leases[p.pick%len(seen.Leases)], p.steps[0]
	r := lock.Revoke{
		Name: seen.Name, Token: victim.Token, Reason: fmt.Sprintf("%s c%d #%d", c.Prefix, c.number, c.turn), SkipGrace: s.proclaim,
	}
	if s.careful {
		r.Slot = &victim.Slot
	}
	if s.pretend {
		r.AcquiredAt = victim.AcquiredAt
	}
	for n := range 2 {
		_, err := ask(c, sending{verify.Revoke, p.via + n, 0, s.vanish}, func(ctx context.Context, s lock.Service) (lock.Lock, error) {
			return s.Revoke(ctx, r)
		})
		if err != nil || !s.again {
			return
		}
	}
}
