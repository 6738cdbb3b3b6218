package locktest

import (
	"context"
	"encoding/json"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func contextCases() cases {
	return cases{
		"a cancelled context changes nothing": contextChanges,
		"a cancelled context reads nothing":   contextReads,
	}
}

func cancelledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func contextChanges(s *fixture) {
	g, ctx := s.mustAcquire(lock.Acquire{}), cancelledContext()
	errs := []error{
		errOf(s.locks().Acquire(ctx, lock.Acquire{Locks: lock.One(s.other(1)), Holder: "h", TTL: longTTL})),
		errOf(s.locks().Acquire(ctx, lock.Acquire{Locks: lock.One(s.name), Holder: "second", TTL: longTTL, Wait: lock.MaxWait})),
		errOf(s.locks().Renew(ctx, lock.Renew{Locks: []string{s.name}, LeaseID: g.ID, TTL: 2 * longTTL})),
		s.locks().Release(ctx, lock.Release{Locks: []string{s.name}, LeaseID: g.ID}),
		errOf(s.locks().Revoke(ctx, lock.Revoke{Name: s.name, Token: g.Token, Reason: "r"})),
		errOf(s.locks().WriteFenced(ctx, lock.FencedWrite{Key: s.name, Lock: s.name, Token: g.Token, Value: json.RawMessage(`1`)})),
	}
	items := []lock.Command{lock.Release{Locks: []string{s.name}, LeaseID: g.ID}, s.complete(lock.Acquire{Locks: lock.One(s.other(1))}), lock.Renew{Locks: []string{s.name}, LeaseID: g.ID}}
	for _, r := range s.locks().Batch(ctx, items) {
		errs = append(errs, r.Err)
	}
	for _, err := range errs {
		s.expectError(err, lock.ErrUnavailable)
	}
	if l := s.get(s.name); l.Revision != 1 || l.Waiters != 0 || !isNear(l.Leases[0].ExpiresAt, g.ExpiresAt) || s.get(s.other(1)).Revision != 0 {
		s.Errorf("the lock is %+v", l)
	}
	s.expectError(errOf(s.locks().ReadFenced(s.ctx, s.name)), lock.ErrNotFound)
}

func contextReads(s *fixture) {
	ctx := cancelledContext()
	for _, err := range []error{
		errOf(s.locks().Lock(ctx, s.name)),
		errOf(s.locks().Watch(ctx, paddock.Watch{Name: s.name, Seen: "0.0.free.0.0", Wait: lock.MaxWait})),
		errOf(s.locks().Queue(ctx, s.name)),
		errOf(s.locks().Locks(ctx, paddock.LockQuery{})),
		errOf(s.locks().Events(ctx, paddock.EventQuery{})),
		errOf(s.locks().VerifyToken(ctx, lock.Verify{Name: s.name, Token: 1})),
		errOf(s.locks().ReadFenced(ctx, s.name)),
	} {
		s.expectError(err, lock.ErrUnavailable)
	}
}
