package locktest

import (
	"context"
	"encoding/json"

	"github.com/paddock-lock/paddock/lock"
)

func contextCases() cases {
	return cases{
		"a cancelled context is granted nothing": contextAcquire,
		"a cancelled context changes nothing":    contextChanges,
		"a cancelled context reads nothing":      contextReads,
	}
}

func cancelledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func contextAcquire(s *fixture) {
	_, err := s.locks.Acquire(cancelledContext(), lock.Acquire{Name: s.name, Holder: "h", TTL: longTTL})
	s.expectError(err, lock.ErrUnavailable)
	if l := s.get(s.name); l.Revision != 0 {
		s.Errorf("the lock is %+v", l)
	}
}

func contextChanges(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	_, err := s.locks.Renew(cancelledContext(), lock.Renew{Name: s.name, LeaseID: g.ID, TTL: 2 * longTTL})
	s.expectError(err, lock.ErrUnavailable)
	s.expectError(s.locks.Release(cancelledContext(), lock.Release{Name: s.name, LeaseID: g.ID}), lock.ErrUnavailable)
	_, err = s.locks.Revoke(cancelledContext(), lock.Revoke{Name: s.name, Token: g.Token, Reason: "r"})
	s.expectError(err, lock.ErrUnavailable)
	_, err = s.locks.WriteFenced(
		cancelledContext(),
		lock.FencedWrite{Key: s.name, Lock: s.name, Token: g.Token, Value: json.RawMessage(`1`)},
	)
	s.expectError(err, lock.ErrUnavailable)
	if l := s.get(s.name); l.Revision != 1 || !isNear(l.Leases[0].ExpiresAt, g.ExpiresAt) {
		s.Errorf("the lock is %+v", l)
	}
	_, err = s.locks.ReadFenced(s.ctx, s.name)
	s.expectError(err, lock.ErrNotFound)
}

func contextReads(s *fixture) {
	_, err := s.locks.Lock(cancelledContext(), s.name)
	s.expectError(err, lock.ErrUnavailable)
	_, err = s.locks.Watch(cancelledContext(), lock.Watch{Name: s.name, Seen: "0.0.free.0.0", Wait: lock.MaxWait})
	s.expectError(err, lock.ErrUnavailable)
	_, err = s.locks.Queue(cancelledContext(), s.name)
	s.expectError(err, lock.ErrUnavailable)
	_, err = s.locks.Locks(cancelledContext(), lock.LockQuery{})
	s.expectError(err, lock.ErrUnavailable)
	_, err = s.locks.Events(cancelledContext(), lock.EventQuery{})
	s.expectError(err, lock.ErrUnavailable)
	_, err = s.locks.VerifyToken(cancelledContext(), lock.Verify{Name: s.name, Token: 1})
	s.expectError(err, lock.ErrUnavailable)
	_, err = s.locks.ReadFenced(cancelledContext(), s.name)
	s.expectError(err, lock.ErrUnavailable)
}
