package locktest

import (
	"context"
	"encoding/json"

	"github.com/paddock-lock/paddock/lock"
)

func cancelling() cases {
	return cases{
		"a context that is over has nothing granted": cancelAcquire,
		"a context that is over has nothing changed": cancelChanges,
		"a context that is over has nothing read":    cancelReads,
	}
}

func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func cancelAcquire(s *scene) {
	_, err := s.locks.Acquire(over(), lock.Acquire{Name: s.name, Holder: "h", TTL: alive})
	s.refused(err, lock.ErrUnavailable)
	if l := s.look(s.name); l.Revision != 0 {
		s.Errorf("the lock is %+v", l)
	}
}

func cancelChanges(s *scene) {
	g := s.granted(lock.Acquire{})
	_, err := s.locks.Renew(over(), lock.Renew{Name: s.name, LeaseID: g.ID, TTL: 2 * alive})
	s.refused(err, lock.ErrUnavailable)
	s.refused(s.locks.Release(over(), lock.Release{Name: s.name, LeaseID: g.ID}), lock.ErrUnavailable)
	_, err = s.locks.Revoke(over(), lock.Revoke{Name: s.name, Token: g.Token, Reason: "r"})
	s.refused(err, lock.ErrUnavailable)
	_, err = s.locks.WriteFenced(over(), lock.FencedWrite{Key: s.name, Lock: s.name, Token: g.Token, Value: json.RawMessage(`1`)})
	s.refused(err, lock.ErrUnavailable)
	if l := s.look(s.name); l.Revision != 1 || !near(l.Leases[0].ExpiresAt, g.ExpiresAt) {
		s.Errorf("the lock is %+v", l)
	}
	_, err = s.locks.ReadFenced(s.ctx, s.name)
	s.refused(err, lock.ErrNotFound)
}

func cancelReads(s *scene) {
	_, err := s.locks.Lock(over(), s.name)
	s.refused(err, lock.ErrUnavailable)
	_, err = s.locks.Watch(over(), lock.Watch{Name: s.name, Seen: "0.0.free.0.0", Wait: lock.MaxWait})
	s.refused(err, lock.ErrUnavailable)
	_, err = s.locks.Queue(over(), s.name)
	s.refused(err, lock.ErrUnavailable)
	_, err = s.locks.Locks(over(), lock.LockQuery{})
	s.refused(err, lock.ErrUnavailable)
	_, err = s.locks.Events(over(), lock.EventQuery{})
	s.refused(err, lock.ErrUnavailable)
	_, err = s.locks.VerifyToken(over(), lock.Verify{Name: s.name, Token: 1})
	s.refused(err, lock.ErrUnavailable)
	_, err = s.locks.ReadFenced(over(), s.name)
	s.refused(err, lock.ErrUnavailable)
}
