package memlock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

func granted(d lock.Decision) lock.Grant {
	return lock.Grant{Lease: d.Grant, Until: d.Grant.ExpiresAt, Replayed: d.Replay}
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
		return granted(d), err
	}
	over := time.NewTimer(a.Wait)
	defer over.Stop()
	a.Attachment, a.Replica = lock.Attachment(rand.Int64()+1), r.self
	told := r.listen(a.Attachment)
	defer r.hangUp(a.Attachment)
	d, err := r.decide(ctx, a)
	for err == nil && d.Queued {
		d, err = r.await(ctx, a, told, over.C)
	}
	return granted(d), err
}

// await returns how the call of a stands once there is news of that.
func (r replica) await(ctx context.Context, a lock.Acquire, told <-chan struct{}, over <-chan time.Time) (lock.Decision, error) {
	leave := lock.Leave{Name: a.Name, LeaseID: a.LeaseID, Attachment: a.Attachment, Keep: a.Keep}
	select {
	case <-told:
		return r.decide(context.Background(), lock.Claim{Name: a.Name, LeaseID: a.LeaseID, Attachment: a.Attachment})
	case <-over:
		return r.decide(context.Background(), leave)
	case <-ctx.Done():
		leave.Gone, leave.Keep = true, false
		if d, err := r.decide(context.Background(), leave); err != nil {
			return d, err
		}
		return lock.Decision{}, overdue(ctx)
	}
}

// listen returns where the call is told that it is to ask how it stands.
func (m *Memory) listen(a lock.Attachment) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := make(chan struct{}, 1)
	m.told[a] = told
	return told
}

func (m *Memory) hangUp(a lock.Attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.told, a)
}

// until waits until there is news, or that instant has come; zero is never. It
// returns an error if the context ends first.
func until(ctx context.Context, news <-chan struct{}, at time.Time) error {
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
		return overdue(ctx)
	}
	return nil
}
