package access

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// Guard returns inner behind the one door: each call needs a key in its context, see
// [With], with the role that the call takes and cover for every name that it touches, and
// stays within the limits. It refuses with ErrKeyMissing, ErrKeyInvalid, ErrKeyExpired,
// ErrRoleMissing, ErrNameNotAllowed, ErrRateLimited and ErrTooManyWaiters, and asks
// inner nothing then: whether a name that a key does not cover is in use stays unsaid.
func Guard(inner lock.Service, l Limits) lock.Service {
	return &guard{inner: inner, limits: l, meters: map[string]*usageMeter{}}
}

type guard struct {
	inner  lock.Service
	limits Limits

	mu     sync.Mutex
	meters map[string]*usageMeter // by the id of the key
}

// A requirement is what a call asks of its key.
type requirement struct {
	role  Role
	scopes []scope
	keepsLease bool          // whether the call keeps or ends what is held
	wait  time.Duration // for how long it may wait
}

// checkedCall makes the call if its key allows it. Where the key ends while the call waits,
// that is what the caller is told, unless it may have been granted something meanwhile:
// then it is to know of that.
func checkedCall[T any](ctx context.Context, g *guard, n requirement, call func(context.Context) (T, error)) (T, error) {
	var none T
	k, m, err := g.admit(ctx, n)
	if err != nil {
		return none, err
	}
	if n.wait <= 0 {
		return call(ctx)
	}
	if !isContinued(ctx) {
		leave, err := m.startWaiting(k)
		if err != nil {
			return none, err
		}
		defer leave()
	}
	ctx, release := k.untilEnd(ctx)
	defer release()
	answer, err := call(ctx)
	if over := (keyEnded{}); err != nil && !errors.Is(err, lock.ErrUnknownOutcome) && errors.As(context.Cause(ctx), &over) {
		return none, over.error
	}
	return answer, err
}

// admit counts the call, and returns its key and what counts for that if the key
// allows it.
func (g *guard) admit(ctx context.Context, n requirement) (Key, *usageMeter, error) {
	k, err := keyOf(ctx)
	if err != nil {
		return k, nil, err
	}
	m := g.meter(k)
	if !isContinued(ctx) {
		if err := m.countCall(k, n.keepsLease); err != nil {
			return k, m, err
		}
	}
	return k, m, n.check(k)
}

// keyOf returns the key of ctx if it is good at all.
func keyOf(ctx context.Context) (Key, error) {
	k, ok := KeyFrom(ctx)
	switch {
	case !ok:
		return k, &lock.Error{Code: lock.ErrKeyMissing, Detail: "This service asks for an API key, and the call has none. Send Authorization: Bearer KEY."}
	case k.revoked != nil && k.revoked.Err() != nil:
		return k, errInvalid()
	case k.Expired(time.Now()):
		return k, k.errExpired()
	}
	return k, nil
}

// check returns an error unless the key is good for what the call needs.
func (n requirement) check(k Key) error {
	if k.Role < n.role {
		return k.errRole(n.role)
	}
	for _, name := range n.scopes {
		if err := name.check(k); err != nil {
			return err
		}
	}
	return nil
}

// An keyEnded is why a context has ended: with the key that waits under it.
type keyEnded struct{ error }

// untilEnd returns a context that ends, for an endOfKey, when the key is not good any more.
func (k Key) untilEnd(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := []func(){func() { cancel(nil) }}
	if k.revoked != nil {
		stop := context.AfterFunc(k.revoked, func() { cancel(keyEnded{errInvalid()}) })
		release = append(release, func() { stop() })
	}
	if !k.ExpiresAt.IsZero() {
		timer := time.AfterFunc(time.Until(k.ExpiresAt), func() { cancel(keyEnded{k.errExpired()}) })
		release = append(release, func() { timer.Stop() })
	}
	return ctx, func() {
		for _, f := range release {
			f()
		}
	}
}

// meter returns what counts for the key.
func (g *guard) meter(k Key) *usageMeter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, known := g.meters[k.ID]; known {
		return m
	}
	m := newUsageMeter(g.limits)
	g.meters[k.ID] = m
	if k.revoked != nil {
		g.dropMeterWith(k.revoked, k.ID, m)
	}
	return m
}

// dropMeterWith drops the meter when the key's context ends.
func (g *guard) dropMeterWith(gone context.Context, id string, m *usageMeter) {
	context.AfterFunc(gone, func() { g.dropMeter(id, m) })
}

func (g *guard) dropMeter(id string, m *usageMeter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.meters[id] == m {
		delete(g.meters, id)
	}
}
