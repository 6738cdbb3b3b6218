package guard

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// ErrReleased is returned by Err of a Lease that was released. It is also the cause with which
// the Lease's contexts end.
const ErrReleased lock.Code = "lease_released"

// A Lease is renewed in the background until it is released or lost. Its methods are safe for
// concurrent use. A Lease of a [Session] is not renewed: it ends with the session.
type Lease struct {
	heart
	locks   paddock.Service
	names   []string   // of all locks, in order
	granted lock.Lease // of the first lock, as Acquire got it; renewals do not update it
	members []Member
	session *Session // nil for none
	// heldAt is the RevokedLeases of the session when the lease was last known to be held.
	heldAt atomic.Int64
	hinted atomic.Bool // since the last search of the session for lost leases began
	file   *leaseFile
}

// newLease returns a Lease that renews the grant. suspended is the clock's suspended time when the
// grant was requested. Renewals use the values of ctx but do not end with it.
func newLease(ctx context.Context, a *acquirer, g lock.Grant, suspended time.Duration) *Lease {
	o, name := a.opts, joined(a.names)
	l := &Lease{locks: a.locks, names: a.names, granted: g.Lease, members: MembersOf(g), session: o.Session, file: a.file}
	l.heart = heart{
		name: name, what: "lease of " + name, lost: lock.ErrLeaseLost, token: g.Token, opts: o, clock: a.clock,
		stateNotifier: stateNotifier{callback: o.OnState},
		sendRenewal: func(ctx context.Context) (time.Time, error) {
			renewed, err := l.locks.Renew(ctx, l.renewal())
			return renewed.Until, err
		},
		watchEnd: watchEnd(a.locks, g.Leases, 0),
	}
	l.heldAt.Store(a.revoked)
	if o.Session != nil {
		o.Session.join(ctx, l, g, suspended)
	} else {
		l.start(ctx, g.Until, suspended)
	}
	context.AfterFunc(l.ctx, func() {
		if l.State() == Lost {
			l.file.close(true)
		}
	})
	return l
}

// isHeldAt notes the result of a renewal that was sent after the session's RevokedLeases were answered. suspended is the
// clock's suspended time then.
func (l *Lease) isHeldAt(revoked int64, err error, suspended time.Duration) {
	if l.loseIfLost(err, suspended); err == nil || isCode(err, lock.ErrLeaseInSet) {
		l.heldAt.Store(revoked)
	}
}

// renewal returns a renewal of all locks of the lease.
func (l *Lease) renewal() lock.Renew { return lock.Renew{Locks: l.names, LeaseID: l.granted.ID} }

// Name returns the lock's name, of several locks the first in the order of names, see Members.
func (l *Lease) Name() string { return l.granted.Name }

// Token returns the fencing token, to be sent with every write that the lock guards. Renewals do
// not change it. Of several locks it is that of the first in the order of names, see TokenOf.
func (l *Lease) Token() lock.Token { return l.granted.Token }

// Task returns the thread of work that the lease was acquired for. Locks that are acquired with a context of the lease
// are of parts of it.
func (l *Lease) Task() lock.TaskID { return l.opts.Task }

// Holder returns the holder of the lease.
func (l *Lease) Holder() string { return l.granted.Holder }

// Slot returns the slot of a permit or a shared lease, starting at 1; 0 for an exclusive lease. Of several
// permits it is the first, see Slots. Of several locks it is that of the first, see Members.
func (l *Lease) Slot() int { return l.granted.Slot }

// Slots returns the slots of the lease in order, one for each of its permits. The lease's token guards a
// resource of each slot. Of several locks they are those of the first, see Members.
func (l *Lease) Slots() []int { return l.granted.Slots.All(l.granted.Slot) }

// SetMetadata replaces the lease's metadata, a JSON object that all clients can read, and renews the
// lease. If the outcome is unknown, call it again with the same metadata.
func (l *Lease) SetMetadata(ctx context.Context, metadata json.RawMessage) error {
	if err := l.Err(); err != nil {
		return err
	}
	ctx, cancel := l.Context(ctx)
	defer cancel()
	suspended := l.clock.suspended()
	r := l.renewal()
	r.Metadata = metadata
	g, err := l.locks.Renew(ctx, r)
	l.loseIfLost(err, suspended)
	if err == nil && l.session == nil {
		l.applyResult(g.Until, suspended, nil) // other failures are left to the next renewal
	}
	return err
}

// Release releases the lease, even if ctx has ended, and takes five seconds at most. It closes Done
// immediately. Stop the work before calling it.
//
// An unanswered release is repeated until the lease has ended, that is, until its TTL and grace have
// passed since the last successful renewal was sent. If the lease has ended already, the release is
// still sent, because an unanswered renewal may have extended the lease: once, for up to half a second.
//
// Release returns nil if the lease was held until now, and lock.ErrLeaseLost if it had ended before:
// the work may then have overlapped with another holder's. Any other error means that the release
// was not answered; the lease ends with its TTL. Release may be called again. After a loss, call it
// to free the lock sooner; with Options.Stays a lost lease is not released, so that the lock is suspect.
func (l *Lease) Release(ctx context.Context) error { return l.releaseClosed(ctx, lock.Closing{}) }

// ReleaseDone is Release for work that is done: it closes the lock as Options.OncePer says, if that says so. If a Release
// came before, or the lease has ended in another way, the lock stays open.
func (l *Lease) ReleaseDone(ctx context.Context) error { return l.releaseClosed(ctx, l.opts.OncePer) }

func (l *Lease) releaseClosed(ctx context.Context, closed lock.Closing) error {
	if l.opts.Stays && errors.Is(l.Err(), lock.ErrLeaseLost) {
		return l.Err() // a release would hand the half-done work to the next client
	}
	err := l.release(ctx, func(ctx context.Context) error {
		return l.locks.Release(ctx, lock.Release{Locks: l.names, LeaseID: l.granted.ID, Closed: closed})
	})
	l.file.close(err == nil || errors.Is(err, lock.ErrLeaseLost))
	return err
}
