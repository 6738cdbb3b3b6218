package metrics

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// The outcomes of calls that succeed.
const (
	granted  = "granted"
	replayed = "replayed" // an acquire or open found the lease or session of an earlier one
	renewed  = "renewed"
	released = "released"
	opened   = "opened"
	closed   = "closed"
	revoked  = "revoked"
)

// The calls about sessions.
const (
	openCall   = "open"
	renewCall  = "renew"
	closeCall  = "close"
	revokeCall = "revoke"
)

// Where stale tokens are shown.
const (
	shownByWrite  = "write"
	shownToVerify = "verify"
	reported      = "report"
)

var staleTokens = []string{shownByWrite, shownToVerify, reported}

// Calls returns a Service that counts each call and passes it to inner.
func (m *Metrics) Calls(inner lock.Service) lock.Service { return &calls{Service: inner, metrics: m} }

// calls counts the calls that change locks or sessions, or show a token. It passes the others on as they are.
type calls struct {
	lock.Service
	metrics *Metrics
}

func (c *calls) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	var began time.Time
	if a.Wait > 0 {
		began = time.Now()
	}
	g, err := c.Service.Acquire(ctx, a)
	c.acquired(modeOf(&a), &g, err)
	if a.Wait > 0 {
		c.metrics.waits.WithLabelValues(modeOf(&a).String(), outcomeOf(granted, err)).Observe(time.Since(began).Seconds())
	}
	return g, err
}

func (c *calls) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	g, err := c.Service.Renew(ctx, r)
	c.renewed(err)
	return g, err
}

func (c *calls) Release(ctx context.Context, r lock.Release) error {
	err := c.Service.Release(ctx, r)
	c.released(err)
	return err
}

// Batch counts each item like a call of its own.
func (c *calls) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	results := c.Service.Batch(ctx, items)
	for i, r := range results {
		switch item := items[i].(type) {
		case lock.Acquire:
			c.acquired(modeOf(&item), &results[i].Grant, r.Err)
		case lock.Renew:
			c.renewed(r.Err)
		case lock.Release:
			c.released(r.Err)
		}
	}
	return results
}

func (c *calls) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	g, err := c.Service.OpenSession(ctx, o)
	done := opened
	if g.Replayed {
		done = replayed
	}
	c.session(openCall, done, err)
	return g, err
}

func (c *calls) RenewSession(ctx context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	g, err := c.Service.RenewSession(ctx, r)
	c.session(renewCall, renewed, err)
	return g, err
}

func (c *calls) CloseSession(ctx context.Context, s lock.CloseSession) error {
	err := c.Service.CloseSession(ctx, s)
	c.session(closeCall, closed, err)
	return err
}

func (c *calls) RevokeSession(ctx context.Context, r lock.RevokeSession) (lock.SessionInfo, error) {
	s, err := c.Service.RevokeSession(ctx, r)
	c.session(revokeCall, revoked, err)
	return s, err
}

func (c *calls) session(call, done string, err error) {
	c.metrics.sessions.WithLabelValues(call, outcomeOf(done, err)).Inc()
}

func (c *calls) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	got, err := c.Service.VerifyToken(ctx, v)
	if err == nil && got.Status == lock.Stale {
		c.metrics.staleness.WithLabelValues(shownToVerify).Inc()
	}
	return got, err
}

func (c *calls) ReportStale(ctx context.Context, r lock.ReportStale) (bool, error) {
	recorded, err := c.Service.ReportStale(ctx, r)
	if err == nil {
		c.metrics.staleness.WithLabelValues(reported).Inc()
	}
	return recorded, err
}

func (c *calls) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	f, err := c.Service.WriteFenced(ctx, w)
	if errors.Is(err, lock.ErrStaleToken) {
		c.metrics.staleness.WithLabelValues(shownByWrite).Inc()
	}
	return f, err
}

func (c *calls) acquired(m lock.Mode, g *lock.Grant, err error) {
	if err == nil && !g.Replayed {
		c.metrics.granted[m].Inc()
		return
	}
	done := granted
	if g.Replayed {
		done = replayed
	}
	c.metrics.acquires.WithLabelValues(m.String(), outcomeOf(done, err)).Inc()
}

func (c *calls) renewed(err error) {
	if err == nil {
		c.metrics.renewed.Inc()
		return
	}
	c.metrics.renewals.WithLabelValues(outcomeOf(renewed, err)).Inc()
}

func (c *calls) released(err error) {
	if err == nil {
		c.metrics.released.Inc()
		return
	}
	c.metrics.releases.WithLabelValues(outcomeOf(released, err)).Inc()
}

// modeOf returns the mode of an acquire, which is exclusive unless it says otherwise. That of a set is the mode of the
// first lock that it names.
func modeOf(a *lock.Acquire) lock.Mode {
	if len(a.Set) > 0 {
		return cmp.Or(a.Set[0].Mode, lock.Exclusive)
	}
	return cmp.Or(a.Mode, lock.Exclusive)
}

// outcomeOf returns the label of a call: done if there is no error, otherwise the error's code.
func outcomeOf(done string, err error) string {
	if err == nil {
		return done
	}
	code := lock.ErrInternal
	errors.As(err, &code)
	return string(code)
}
