package sim

import (
	"context"
	"errors"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// inSession sends the calls about a lease as calls about a session that has this lease alone. So the guard keeps the
// session alive, and it closes the session when it releases the lease.
type inSession struct {
	paddock.Service
	*attempt
}

// session returns the service as the attempt uses it.
func (a *attempt) session(locks paddock.Service) paddock.Service {
	if !a.scenario.session {
		return locks
	}
	return inSession{locks, a}
}

// Acquire opens the session, or extends it to the end of this wait, and acquires the lock in it.
func (s inSession) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	ttl := a.Wait + s.plan.TTL
	a.SessionID, a.TTL, a.Grace = lock.SessionID(a.LeaseID), 0, 0
	if _, err := s.OpenSession(ctx, lock.OpenSession{ID: a.SessionID, Holder: a.Holder, TTL: ttl}); err != nil {
		return lock.Grant{}, asLeaseLost(err)
	}
	if _, err := s.RenewSession(ctx, lock.RenewSession{ID: a.SessionID, TTL: ttl}); err != nil {
		return lock.Grant{}, asLeaseLost(err)
	}
	g, err := s.Service.Acquire(ctx, a)
	return g, asLeaseLost(err)
}

// Renew renews the session, and returns the lease with its end.
func (s inSession) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	if _, err := s.RenewSession(ctx, lock.RenewSession{ID: lock.SessionID(r.LeaseID), TTL: s.plan.TTL}); err != nil {
		return lock.Grant{}, asLeaseLost(err)
	}
	r.TTL = 0
	g, err := s.Service.Renew(ctx, r)
	return g, asLeaseLost(err)
}

// Release closes the session.
func (s inSession) Release(ctx context.Context, r lock.Release) error {
	return asLeaseLost(s.CloseSession(ctx, lock.CloseSession{ID: lock.SessionID(r.LeaseID)}))
}

// asLeaseLost returns err as the guard of a lease knows it.
func asLeaseLost(err error) error {
	if e := (*lock.Error)(nil); errors.As(err, &e) && e.Code == lock.ErrSessionLost {
		lost := *e
		lost.Code = lock.ErrLeaseLost
		return &lost
	}
	return err
}
