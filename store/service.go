package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// Acquire grants the lock, or waits for it, see lock.Service.
func (s *Store) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	a, err := a.Resolve(s.bounds)
	if err != nil {
		return lock.Grant{}, err
	}
	call := s.own(a)
	if call.Wait > 0 {
		return s.acquireWaiting(ctx, call)
	}
	return s.grant(ctx, call)
}

// own returns a as this replica decides on it, with a LeaseID.
func (s *Store) own(a lock.Acquire) acquireCall {
	call := acquireCall{Acquire: a, generatedID: a.LeaseID == (lock.LeaseID{})}
	if call.generatedID {
		call.LeaseID = lock.LeaseID(uuid.New())
	}
	call.Attachment, call.Replica = 0, s.self
	return call
}

// Renew moves the end of a lease, see lock.Service.
func (s *Store) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	r, err := r.Resolve(s.bounds)
	if err != nil {
		return lock.Grant{}, err
	}
	return s.grant(ctx, r)
}

func (s *Store) grant(ctx context.Context, cmd lock.Command) (lock.Grant, error) {
	out, err := s.do(ctx, cmd)
	if err != nil {
		return lock.Grant{}, err
	}
	return grantOf(out), nil
}

// grantOf returns what a caller is told of the lease that it got.
func grantOf(o outcome) lock.Grant {
	return lock.Grant{Lease: o.Lease, Until: o.until(o.Lease.ExpiresAt), Replayed: o.Replayed}
}

// Release ends a lease, see lock.Service.
func (s *Store) Release(ctx context.Context, r lock.Release) error {
	r, err := r.Resolve()
	if err != nil {
		return err
	}
	_, err = s.do(ctx, r)
	return err
}

// Revoke takes a lease away, see lock.Service.
func (s *Store) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	r, err := r.Resolve()
	if err != nil {
		return lock.Lock{}, err
	}
	out, err := s.do(ctx, r)
	if err != nil {
		return lock.Lock{}, err
	}
	return out.Locks[0].Lock(out.Now), nil
}
