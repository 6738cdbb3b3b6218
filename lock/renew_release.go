package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"
)

// Renew sets the expiry of the leases of its Locks to now plus their TTL, but never to an earlier expiry than the current
// one, and never beyond their MaxHold. It works until the end of the grace, and for a lease that stays also when it is
// suspect: then that is held again. It does not revive a lease that has ended. It
// moves no lease of a session: that is renewed by a RenewSession.
type Renew struct {
	Locks   []string // all that were acquired together
	LeaseID LeaseID
	TTL     time.Duration // the lease's new TTL, within the Bounds, at most its MaxHold; zero: unchanged
	// Metadata replaces the lease's metadata: a JSON object of up to MaxMetadataSize bytes; nil: unchanged.
	Metadata json.RawMessage

	// Requested are the names in the request, if Locks also has ancestors of them. Set by In.
	Requested []string
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r Renew) Resolve(b Bounds) (Renew, error) {
	if r.TTL != 0 {
		if err := CheckDuration("ttl_ms", r.TTL, b.MinTTL, b.MaxTTL); err != nil {
			return r, err
		}
	}
	var err error
	r.Locks, err = resolveNames(r.Locks)
	return r, cmp.Or(err, checkLeaseID(r.LeaseID), checkMetadata(r.Metadata))
}

// Names returns the Locks.
func (r Renew) Names() []string { return r.Locks }

// Traits returns those of a command about a lease.
func (r Renew) Traits() Traits { return Traits{Lease: r.LeaseID, TellsEnd: true} }

// In returns r with the ancestors of its locks, or the refusal of a TTL outside of a rule.
func (r Renew) In(p *Policy) (Command, error) {
	for _, name := range r.Locks {
		if rule := p.RuleOf(name); rule != nil {
			if err := rule.checkTimes(r.TTL, MaxGrace); err != nil {
				return r, err
			}
		}
	}
	r.Locks, r.Requested = p.trees().expand(r.Locks)
	return r, nil
}

// Apply extends the leases, or refuses with ErrLeaseLost. New metadata emits an event, so that watchers see it.
func (r Renew) Apply(v View) Decision {
	d := begin(v, r.Requested)
	d.applyTime()
	if d.isPast(r.LeaseID) {
		return d.finish(errLost(d.locks, r.LeaseID))
	}
	if err := d.checkSet(r.LeaseID); err != nil {
		return d.finish(err)
	}
	leases, all := d.leases(r.LeaseID)
	if !all {
		return d.finish(errLost(d.locks, r.LeaseID))
	}
	if leases[0].Session != 0 && r.TTL != 0 {
		return d.finish(Invalid("ttl_ms", "cannot be given for a lease of a session, which ends with it; renew the session instead"))
	}
	left := leases[0].ExpiresAt.Sub(d.locks[0].begin)
	leases = d.claim(leases, 0) // a client that renews knows of the lease, so no call may withdraw it
	for i, s := range d.locks {
		var err error
		if leases[i], err = s.renew(leases[i], r); err != nil {
			return d.finish(err) // at the first already: the leases of a set end together
		}
	}
	out := d.finishWithLeases(leases, false)
	out.Renewed, out.Left = true, left
	return out
}

// renew extends the lease, or refuses if it has reached its MaxHold.
func (s *lockState) renew(l Lease, r Renew) (Lease, error) {
	l.TTL = cmp.Or(r.TTL, l.TTL)
	l = s.view.Policy.within(l)
	l.capTTL()
	l.ExpiresAt = l.expiryFrom(s.begin)
	if l.Left = 0; l.Session == 0 && l.ExpiresAt.Sub(s.begin) > l.TTL {
		l.Left = l.ExpiresAt.Sub(s.begin)
	}
	if own := l.OwnExpiry(); !own.IsZero() && !s.begin.Before(own) {
		return l, errHeldTooLong(&l)
	}
	l.Suspect = false
	updates := r.Metadata != nil && !bytes.Equal(r.Metadata, l.Metadata)
	if updates {
		l.Metadata = r.Metadata
	}
	s.replaceLease(l)
	if updates {
		s.emit(Event{Kind: MetadataUpdated, Caller: s.view.Caller}, l)
	}
	return l, nil
}

// Release ends the leases of its Locks, or removes the waiters of its LeaseID from their queues. Releasing them again
// succeeds and changes nothing. A lease that ended in another way is refused with ErrLeaseLost, because the work may have
// overlapped with that of another holder.
type Release struct {
	Locks   []string // all that were acquired together
	LeaseID LeaseID
	// Closed closes the locks in the same decision. The leases must be exclusive. A Release that is repeated, or comes
	// after the end of the leases, closes nothing.
	Closed Closing

	// Requested are the names in the request, if Locks also has ancestors of them. Set by In.
	Requested []string
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r Release) Resolve() (Release, error) {
	var err error
	if r.Locks, err = resolveNames(r.Locks); err != nil {
		return r, err
	}
	r.Closed, err = r.Closed.resolve()
	return r, cmp.Or(checkLeaseID(r.LeaseID), err)
}

// Names returns the Locks.
func (r Release) Names() []string { return r.Locks }

// Traits returns those of a command about a lease.
func (r Release) Traits() Traits { return Traits{Lease: r.LeaseID} }

// In returns r with the ancestors of its locks.
func (r Release) In(p *Policy) (Command, error) {
	r.Locks, r.Requested = p.trees().expand(r.Locks)
	return r, nil
}

// Apply ends the leases, or refuses with ErrLeaseLost. If a part of a set was lost, it ends the others all the same.
func (r Release) Apply(v View) Decision {
	d := begin(v, r.Requested)
	d.applyTime()
	end := r.release
	if d.isPast(r.LeaseID) {
		end = (*lockState).checkReleased
	} else if err := cmp.Or(d.checkSet(r.LeaseID), d.checkCloses(r)); err != nil {
		return d.finish(err)
	}
	var lost error
	for _, s := range d.locks {
		if err := end(s, r.LeaseID); err != nil && lost == nil && !s.above { // no event tells how an intention has ended
			lost = err
		}
	}
	d.promote()
	return d.finish(lost)
}

// checkCloses returns the refusal of a release that closes its locks unless it ends exclusive leases.
func (d *decider) checkCloses(r Release) error {
	if !r.Closed.asks() {
		return nil
	}
	for _, s := range d.locks {
		if l, held := s.lease(r.LeaseID); !s.above && held && l.Mode != Exclusive {
			return Invalid(r.Closed.field(), "is only valid with an exclusive lease; that of %s is %s", s.record.Name, l.Mode)
		}
		if _, waits := s.waiter(r.LeaseID); !s.above && waits {
			return Invalid(r.Closed.field(), "is only valid with a lease, and this call still waits for %s", s.record.Name)
		}
	}
	return nil
}

// release ends the lease and closes the lock, or removes the waiter; or refuses if there is neither and it was not
// released before.
func (r Release) release(s *lockState, id LeaseID) error {
	if l, ok := s.lease(id); ok {
		closed := r.closes(s, l)
		s.endLease(l, Event{Kind: Released, Until: closed.Until, Caller: s.view.Caller})
		if closed != (Closure{}) {
			s.record.Closed = &closed
		}
		return nil
	}
	if w, waits := s.waiter(id); waits {
		s.dequeue(w, reasonPlaceReleased)
		return nil
	}
	return s.checkReleased(id)
}

// closes returns how the release of the lease closes the lock, zero if it does not.
func (r Release) closes(s *lockState, l Lease) Closure {
	if s.above || !r.Closed.asks() {
		return Closure{}
	}
	until := r.Closed.until(l.AcquiredAt)
	if !s.view.Now.Before(until) {
		return Closure{}
	}
	return Closure{Until: until, Holder: l.Holder, At: s.now}
}

// checkReleased refuses unless the lease or the place was released.
func (s *lockState) checkReleased(id LeaseID) error {
	if e, known := s.lastEvent(id); known && (e.Kind == Released || e.Kind == Dequeued) {
		return nil
	}
	return errLost([]*lockState{s}, id)
}
