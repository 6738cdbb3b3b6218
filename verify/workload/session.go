package workload

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// openSession opens a session for the lease, with the TTL and the grace that it should have.
func (c *client) openSession(l *lease, via int) error {
	a := &l.acquire
	o := lock.OpenSession{ID: lock.SessionID(uuid.New()), Holder: a.Holder, TTL: a.TTL, Grace: a.Grace}
	a.SessionID, a.TTL, a.Grace = o.ID, 0, 0
	_, err := callWithRetries(c, callOptions{verify.OpenSession, via, 0, never},
		func(ctx context.Context, s paddock.Service) (lock.SessionGrant, error) { return s.OpenSession(ctx, o) })
	return err
}

// renewSession renews the session of the lease.
func (c *client) renewSession(l *lease, s step) error {
	r := lock.RenewSession{ID: l.acquire.SessionID}
	g, err := callWithRetries(c, callOptions{verify.RenewSession, s.via, 0, s.cancelAfter},
		func(ctx context.Context, s paddock.Service) (lock.SessionGrant, error) { return s.RenewSession(ctx, r) })
	if err == nil {
		l.ends = time.Now().Add(g.TTL)
	}
	return err
}

// closeSession closes the session of the lease, which ends it.
func (c *client) closeSession(l lease, via int) error {
	_, err := callWithRetries(c, callOptions{verify.CloseSession, via, 0, never},
		func(ctx context.Context, s paddock.Service) (struct{}, error) {
			return struct{}{}, s.CloseSession(ctx, lock.CloseSession{ID: l.acquire.SessionID})
		})
	return err
}
