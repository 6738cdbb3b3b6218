package memlock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// grantOf returns the grant as its holder is told of it, on the clock of package time.
func grantOf(d outcome) lock.Grant {
	return lock.Grant{Lease: d.Grant, Until: d.began.Add(d.Grant.ExpiresAt.Sub(d.Now)), Replayed: d.Replay}
}

// Acquire decides, and waits for as long as the decision is to wait.
func (r replica) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	a, err := a.Resolve(r.bounds)
	if err != nil {
		return lock.Grant{}, err
	}
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID = lock.LeaseID(uuid.New())
	}
	if a.Wait == 0 {
		d, err := r.decide(ctx, a)
		return grantOf(d), err
	}
	over := time.NewTimer(a.Wait)
	defer over.Stop()
	a.Attachment, a.Replica = lock.Attachment(rand.Int64()+1), r.self
	c := r.register(a.Attachment)
	defer r.unregister(a.Attachment)
	d, err := r.decide(ctx, a)
	for err == nil && d.Queued {
		d, err = r.await(ctx, a, c, over.C)
	}
	if err == nil && ctx.Err() != nil { // the grant crossed the client's leaving
		return lock.Grant{}, r.cancelWait(ctx, a)
	}
	return grantOf(d), err
}

// cancelWait has the call of a leave, for its client is gone, and returns why.
func (r replica) cancelWait(ctx context.Context, a lock.Acquire) error {
	leave := lock.Leave{Name: a.Name, LeaseID: a.LeaseID, Attachment: a.Attachment, Disconnected: true}
	if _, err := r.decide(context.Background(), leave); err != nil {
		return err
	}
	return contextError(ctx)
}

// await returns how the call of a stands once there is news of that.
func (r replica) await(ctx context.Context, a lock.Acquire, c call, over <-chan time.Time) (outcome, error) {
	leave := lock.Leave{Name: a.Name, LeaseID: a.LeaseID, Attachment: a.Attachment, KeepPlace: a.KeepPlace}
	select {
	case <-c.wake:
		return r.decide(context.Background(), lock.Claim{Name: a.Name, LeaseID: a.LeaseID, Attachment: a.Attachment})
	case <-over:
		return r.decide(context.Background(), leave)
	case <-ctx.Done():
		return outcome{}, r.cancelWait(ctx, a)
	case <-c.crashed:
		return outcome{}, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "The replica has crashed. Send the same again."}
	}
}

// A call is one that waits with a replica.
type call struct {
	self    lock.Replica
	wake    chan struct{} // that it is to ask how it stands
	crashed chan struct{} // closed when the replica crashes
}

// register notes that a call waits with the replica.
func (r replica) register(a lock.Attachment) call {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := call{self: r.self, wake: make(chan struct{}, 1), crashed: make(chan struct{})}
	r.calls[a] = c
	return c
}

func (m *Memory) unregister(a lock.Attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.calls, a)
}

// waitFor waits waitFor there is news, or that instant has come; zero is never. It
// returns an error if the context ends first.
func waitFor(ctx context.Context, news <-chan struct{}, at time.Time) error {
	var due <-chan time.Time
	if !at.IsZero() {
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-news:
	case <-due:
	case <-ctx.Done():
		return contextError(ctx)
	}
	return nil
}
