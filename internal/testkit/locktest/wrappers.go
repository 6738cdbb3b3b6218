package locktest

import (
	"context"
	"math/rand/v2"

	"github.com/paddock-lock/paddock/lock"
)

// AtRandom returns a service that sends each call to a random one of services, like a load balancer.
func AtRandom(services ...lock.Service) lock.Service { return balancer(services) }

type balancer []lock.Service

func (b balancer) any() lock.Service { return b[rand.IntN(len(b))] }

func (b balancer) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return b.any().Acquire(ctx, a)
}

func (b balancer) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return b.any().Renew(ctx, r)
}

func (b balancer) Release(ctx context.Context, r lock.Release) error { return b.any().Release(ctx, r) }

func (b balancer) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	return b.any().Batch(ctx, items)
}

func (b balancer) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	return b.any().Revoke(ctx, r)
}

func (b balancer) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	return b.any().OpenSession(ctx, o)
}

func (b balancer) RenewSession(ctx context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	return b.any().RenewSession(ctx, r)
}

func (b balancer) CloseSession(ctx context.Context, c lock.CloseSession) error {
	return b.any().CloseSession(ctx, c)
}

func (b balancer) RevokeSession(ctx context.Context, r lock.RevokeSession) (lock.SessionInfo, error) {
	return b.any().RevokeSession(ctx, r)
}

func (b balancer) Session(ctx context.Context, ref lock.SessionRef) (lock.SessionInfo, error) {
	return b.any().Session(ctx, ref)
}

func (b balancer) Sessions(ctx context.Context, q lock.SessionQuery) (lock.Page[lock.SessionInfo], error) {
	return b.any().Sessions(ctx, q)
}

func (b balancer) DeclareTree(ctx context.Context, root string) (lock.Tree, error) {
	return b.any().DeclareTree(ctx, root)
}

func (b balancer) RemoveTree(ctx context.Context, root string) error {
	return b.any().RemoveTree(ctx, root)
}

func (b balancer) Trees(ctx context.Context) ([]lock.Tree, error) { return b.any().Trees(ctx) }

func (b balancer) Lock(ctx context.Context, name string) (lock.Lock, error) {
	return b.any().Lock(ctx, name)
}

func (b balancer) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	return b.any().Watch(ctx, w)
}

func (b balancer) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	return b.any().Queue(ctx, name)
}

func (b balancer) Locks(ctx context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	return b.any().Locks(ctx, q)
}

func (b balancer) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	return b.any().Events(ctx, q)
}

func (b balancer) ReportStale(ctx context.Context, r lock.ReportStale) (bool, error) {
	return b.any().ReportStale(ctx, r)
}

func (b balancer) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	return b.any().VerifyToken(ctx, v)
}

func (b balancer) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	return b.any().WriteFenced(ctx, w)
}

func (b balancer) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	return b.any().ReadFenced(ctx, key)
}

// Batched returns a service that sends each call as a batch of one item, if it can be an item. Those about a set
// cannot.
func Batched(s lock.Service) lock.Service { return batched{s} }

type batched struct{ lock.Service }

func (b batched) one(ctx context.Context, item lock.Command) (lock.Grant, error) {
	r := b.Batch(ctx, []lock.Command{item})
	return r[0].Grant, r[0].Err
}

func (b batched) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if a.Wait != 0 || a.KeepPlace || a.Set != nil {
		return b.Service.Acquire(ctx, a)
	}
	return b.one(ctx, a)
}

func (b batched) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	if r.Set != nil {
		return b.Service.Renew(ctx, r)
	}
	return b.one(ctx, r)
}

func (b batched) Release(ctx context.Context, r lock.Release) error {
	if r.Set != nil {
		return b.Service.Release(ctx, r)
	}
	_, err := b.one(ctx, r)
	return err
}
