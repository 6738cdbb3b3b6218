package memlock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// grantOf returns the grant of the decision, with Until on the clock of package time.
func grantOf(d outcome, err error) (lock.Grant, error) {
	if err != nil {
		return lock.Grant{}, err
	}
	first := d.Leases[0]
	return lock.Grant{Lease: first, Leases: d.Leases, Until: d.began.Add(first.ExpiresAt.Sub(d.Now)), Replayed: d.Replayed}, nil
}

// Acquire decides, and waits while the call is queued.
func (r replica) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	a, err := a.Resolve(r.bounds)
	if err != nil {
		return lock.Grant{}, err
	}
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID, a.GeneratedID = lock.LeaseID(uuid.New()), true
	}
	session := a.SessionID.Ref()
	a.SessionFull = session != 0 && len(r.locksOf(session))+len(a.Locks) > r.bounds.MaxSessionLeases
	if a.Wait == 0 {
		return grantOf(r.decide(ctx, a))
	}
	end := time.NewTimer(a.Wait)
	defer end.Stop()
	a.Attachment, a.Replica = lock.Attachment(rand.Int64()+1), r.self
	c := r.register(a)
	defer r.unregister(a.Attachment)
	d, err := r.decide(ctx, a)
	for err == nil && d.Queued {
		d, err = r.await(ctx, a, c, end.C)
	}
	if err == nil && ctx.Err() != nil { // the client left at the same time
		return lock.Grant{}, r.cancelWait(ctx, a, c)
	}
	return grantOf(d, err)
}

// cancelWait detaches the waiter of a disconnected client, and returns the error.
func (r replica) cancelWait(ctx context.Context, a lock.Acquire, c call) error {
	leave := leaveOf(a)
	leave.KeepPlace, leave.Disconnected, leave.WaitLeft = !a.GeneratedID, true, max(time.Until(c.end), 0)
	if _, err := r.decide(context.Background(), leave); err != nil {
		return err
	}
	return contextError(ctx)
}

// leaveOf returns the command that ends the wait of a.
func leaveOf(a lock.Acquire) lock.Leave {
	return lock.Leave{Locks: a.Names(), LeaseID: a.LeaseID, Attachment: a.Attachment, SessionID: a.SessionID, Once: a.Once}
}

// await waits for a wake-up, the time to look for a deadlock, the end of the wait or of ctx, or a crash, and returns
// the next decision.
func (r replica) await(ctx context.Context, a lock.Acquire, c call, end <-chan time.Time) (outcome, error) {
	leave := leaveOf(a)
	leave.KeepPlace = a.KeepPlace
	var look <-chan time.Time
	if a.Thread() != "" {
		look = time.After(lookInterval)
	}
	select {
	case <-c.wake:
		return r.decide(context.Background(), lock.Claim{
			Locks: leave.Locks, LeaseID: a.LeaseID, Attachment: a.Attachment, SessionID: a.SessionID, Once: a.Once,
		})
	case <-end:
		return r.decide(context.Background(), leave)
	case <-ctx.Done():
		return outcome{}, r.cancelWait(ctx, a, c)
	case <-look:
		if names := r.deadlockOf(a.Attachment); names != nil {
			return r.decide(context.Background(), lock.BreakDeadlock{Locks: names, LeaseID: a.LeaseID, Attachment: a.Attachment})
		}
		return outcome{Decision: lock.Decision{Queued: true}}, nil
	case <-c.crashed:
		return outcome{}, &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "The replica has crashed. Retry."}
	}
}

// lookInterval is the time between two looks of a call with a task for a deadlock whose victim it is.
const lookInterval = time.Second

// deadlockOf returns the locks of the deadlock whose victim the call is, nil if there is none.
func (r replica) deadlockOf(a lock.Attachment) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.now()
	var all []lock.Record
	for name, s := range r.locks {
		if len(s.Queue) > 0 {
			s = r.state(name)
			s.Leases = s.ActiveLeases(now)
			all = append(all, s)
		}
	}
	for _, d := range lock.FindDeadlocks(all, now, r.self) {
		if d.Attachment == a {
			return d.Locks
		}
	}
	return nil
}

// A call is a waiting call of a replica.
type call struct {
	self    lock.Replica
	end     time.Time     // of the wait
	wake    chan struct{} // signals a grant
	crashed chan struct{} // closed when the replica crashes
}

// register adds a waiting call of the replica.
func (r replica) register(a lock.Acquire) call {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := call{self: r.self, end: time.Now().Add(a.Wait), wake: make(chan struct{}, 1), crashed: make(chan struct{})}
	r.calls[a.Attachment] = c
	return c
}

func (m *Memory) unregister(a lock.Attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.calls, a)
}

// waitFor waits for news or for the instant at, zero for never. It returns an error if the context ends first.
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
