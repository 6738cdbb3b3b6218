package store

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// leaveFor is for how long a call that was lost may be tried to be undone. Its
// place is not kept for longer than that, whatever comes.
const leaveFor = lock.MaxWait + lock.PlaceRetention

// An acquireCall is a lock.Acquire as this replica decides it.
type acquireCall struct {
	lock.Acquire
	generatedID  bool // the LeaseID was generated for this call: no lease has ever had it
	limitReached bool // the limit on waiting calls is reached
}

// Refs returns the lease of a, unless no lease can have had its ID.
func (a acquireCall) Refs() []lock.LeaseRef {
	if a.generatedID {
		return nil
	}
	return a.Acquire.Refs()
}

// Apply decides, see lock.Acquire.
func (a acquireCall) Apply(v lock.View) lock.Decision {
	v.WaiterLimitReached = a.limitReached
	return a.Acquire.Apply(v)
}

// acquireWaiting acquires and waits. The call joins the queue, if it must, in a
// batch like any other, and then sleeps until it is told that it has the lock.
func (s *Store) acquireWaiting(ctx context.Context, a acquireCall) (g lock.Grant, err error) {
	over := time.NewTimer(a.Wait)
	defer over.Stop()
	t, full, err := s.seats.take(a.Acquire)
	if err != nil {
		return lock.Grant{}, err
	}
	defer func() { s.seats.leave(t, err == nil) }()
	a.Attachment, a.limitReached = t.attachment, full
	out, err := s.do(ctx, a)
	begun := !errors.Is(err, lock.ErrUnavailable)
	for err == nil && out.Queued {
		s.seats.joined(t, out.place)
		out, err = s.await(ctx, t, over.C, a.KeepPlace)
	}
	if err == nil && ctx.Err() != nil {
		err = departed(context.Cause(ctx)) // it crossed the client's leaving
	}
	if err == nil {
		return grantOf(out), nil
	}
	if begun && undecided(err) && !errors.Is(err, errStopping) {
		s.abandon(ctx, t)
	}
	return lock.Grant{}, err
}

// undecided is whether err says nothing of what was decided.
func undecided(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrInternal)
}

// await sleeps until there is something to do for the call, and does it. When the answer to its
// claim is lost it claims again: the second finds what the first has done, and a call that was
// told that nobody knows would be passed over until it came back.
func (s *Store) await(ctx context.Context, t *seat, over <-chan time.Time, keep bool) (outcome, error) {
	pause := newPause()
	for lost := (<-chan time.Time)(nil); ; {
		select {
		case out := <-t.granted:
			return out, nil
		case <-t.again:
		case <-lost:
		case <-over:
			return s.do(ctx, lock.Leave{Name: t.name, LeaseID: t.lease, Attachment: t.attachment, KeepPlace: keep})
		case <-s.seats.drained:
			return s.leaveInTime(ctx, t)
		case <-ctx.Done():
			return outcome{}, departed(context.Cause(ctx))
		}
		out, err := s.do(ctx, lock.Claim{Name: t.name, LeaseID: t.lease, Attachment: t.attachment})
		if !errors.Is(err, lock.ErrUnknownOutcome) || ctx.Err() != nil {
			return out, err
		}
		lost = time.After(pause.NextBackOff())
	}
}

// leaveInTime has the call leave its place to be found by the next, since this
// replica is about to stop.
func (s *Store) leaveInTime(ctx context.Context, t *seat) (outcome, error) {
	out, err := s.do(ctx, lock.Leave{Name: t.name, LeaseID: t.lease, Attachment: t.attachment, KeepPlace: true})
	if errors.Is(err, lock.ErrHeld) {
		err = stopping()
	}
	return out, err
}

// abandon sees to the place of a call that was answered without a decision, once
// the database lets it: a grant that crossed the answer is withdrawn, for nobody
// will hear of it. If the client is gone the place is given up; if only its answer
// is, it is kept, for the client was told to come back.
func (s *Store) abandon(ctx context.Context, t *seat) {
	keep := !errors.Is(context.Cause(ctx), context.Canceled)
	s.work.Go(func() {
		s.giveBack(lock.Leave{Name: t.name, LeaseID: t.lease, Attachment: t.attachment, Disconnected: true, KeepPlace: keep})
	})
}

// giveBack leaves for a call that nobody waits for, again while it is not known to
// be done. What is left when that takes too long ends by itself: the place when it
// is not kept any longer, the lease with its TTL.
func (s *Store) giveBack(l lock.Leave) {
	ctx, cancel := context.WithTimeout(s.ctx, leaveFor)
	defer cancel()
	_, err := s.do(ctx, l)
	for undecided(err) && ctx.Err() == nil && s.sleep(jittered(maxPause)) {
		_, err = s.do(ctx, l)
	}
	if undecided(err) && s.ctx.Err() == nil {
		s.log.Warn("cannot remove an ended call from its queue", "lock", l.Name, "error", err)
	}
}

// tell tells those who were promoted, here in memory and elsewhere by a
// notification, and those who watch.
func (s *Store) tell(outcomes []outcome) {
	events := false
	for _, o := range outcomes {
		events = events || len(o.Events) > 0
		for _, w := range o.Promoted {
			s.log.Debug("promoted", "lock", w.Lease.Name, "place", w.Place, "holder", w.Lease.Holder, "here", w.Replica == s.self)
			s.tellOne(o, w)
		}
	}
	s.tail.pokeIfAny()
	if events && s.othersWatch.Load() {
		s.notices.addEvents()
	}
}

// tellOne tells the waiter that it has been granted the lock. If its call is over,
// the grant is given back; the place is kept, should its client have been told to
// come back.
func (s *Store) tellOne(o outcome, w lock.Waiter) {
	if w.Replica != s.self {
		s.notices.addGranted(w.Attachment)
		return
	}
	told := false
	for _, l := range o.Locks[0].Leases {
		if l.ID == w.Lease.ID {
			told = s.seats.grant(w.Attachment, outcome{Decision: lock.Decision{Now: o.Now, Lease: l}, began: o.began})
		}
	}
	if !told {
		s.work.Go(func() {
			s.giveBack(lock.Leave{Name: w.Lease.Name, LeaseID: w.Lease.ID, Attachment: w.Attachment, Disconnected: true, KeepPlace: true})
		})
	}
}
