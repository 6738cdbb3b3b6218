package lock

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// A SessionChange opens, renews, closes or revokes a session.
type SessionChange interface {
	// Session returns the session that is changed.
	Session() SessionRef
	// Change decides at now and returns the changed session. The given session is nil if there is none; it is not
	// modified. The caller must lock the session, then read it and the clock, and hold the lock until the result is
	// stored. stored is false if there is nothing to store. A repeated call that succeeds stores the session
	// unchanged, so that its answer is as durable as the first one.
	Change(s *Session, now time.Time) (after Session, stored bool, err error)
}

// OpenSession opens a session. If a session with this ID is open already, it returns that session, with its remaining
// time.
type OpenSession struct {
	ID       SessionID     // zero: the service generates one, and the request cannot be retried
	Holder   string        // free text for people: 1 to MaxHolderLength characters
	TTL      time.Duration // within the Bounds; zero: their default
	Grace    time.Duration // within the Bounds
	Metadata json.RawMessage
}

// Resolve returns o with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (o OpenSession) Resolve(b Bounds) (OpenSession, error) {
	o.TTL = cmp.Or(o.TTL, b.DefaultTTL)
	return o, cmp.Or(
		checkText("holder", o.Holder, 1, MaxHolderLength),
		CheckDuration("ttl_ms", o.TTL, b.MinTTL, b.MaxTTL),
		CheckDuration("grace_ms", o.Grace, 0, b.MaxGrace),
		checkMetadata(o.Metadata),
	)
}

// Session returns the session.
func (o OpenSession) Session() SessionRef { return o.ID.Ref() }

// Change opens the session, or finds it. A session_id whose session has ended is never used again.
func (o OpenSession) Change(s *Session, now time.Time) (Session, bool, error) {
	if s == nil {
		return Session{
			ID: o.ID, Holder: o.Holder, TTL: o.TTL, Grace: o.Grace, Metadata: o.Metadata, OpenedAt: now,
			ExpiresAt: now.Add(o.TTL),
		}, true, nil
	}
	if err := s.usable(o.ID, now); err != nil {
		return Session{}, false, err
	}
	if s.Holder != o.Holder {
		return Session{}, false, &Error{Code: ErrSessionIDInUse, Detail: "The session_id belongs to a session with another holder. " +
			"Use a new random UUID for each session."}
	}
	return *s, true, nil // so that what the answer confirms is as durable as the opening
}

// RenewSession sets the expiry of a session to now plus its TTL, but never to an earlier one than it has. It works
// until the end of the grace. It does not revive a session that has ended.
type RenewSession struct {
	ID  SessionID
	TTL time.Duration // the session's new TTL, within the Bounds; zero: unchanged
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r RenewSession) Resolve(b Bounds) (RenewSession, error) {
	if r.TTL != 0 {
		if err := CheckDuration("ttl_ms", r.TTL, b.MinTTL, b.MaxTTL); err != nil {
			return r, err
		}
	}
	return r, checkSessionID(r.ID)
}

// Session returns the session.
func (r RenewSession) Session() SessionRef { return r.ID.Ref() }

// Change extends the session, or refuses with ErrSessionLost.
func (r RenewSession) Change(s *Session, now time.Time) (Session, bool, error) {
	if err := s.usable(r.ID, now); err != nil {
		return Session{}, false, err
	}
	after := *s
	after.TTL = cmp.Or(r.TTL, s.TTL)
	if end := now.Add(after.TTL); end.After(s.ExpiresAt) {
		after.ExpiresAt = end
	}
	return after, true, nil
}

// CloseSession ends a session, its leases and its places in queues. Closing it again succeeds and changes nothing. A
// session that ended in another way is refused with ErrSessionLost, because the work may have overlapped with another
// holder's.
type CloseSession struct {
	ID SessionID
}

// Resolve returns c, or an ErrInvalid error that names the invalid field.
func (c CloseSession) Resolve() (CloseSession, error) { return c, checkSessionID(c.ID) }

// Session returns the session.
func (c CloseSession) Session() SessionRef { return c.ID.Ref() }

// Change marks the session as closed. Each lease still blocks others until an EndSession has ended it.
func (c CloseSession) Change(s *Session, now time.Time) (Session, bool, error) {
	if s != nil && s.ID == c.ID && s.Ended == Released {
		return *s, true, nil
	}
	if err := s.usable(c.ID, now); err != nil {
		return Session{}, false, err
	}
	return s.end(Released, now, ""), true, nil
}

// RevokeSession ends a session, its leases and its places in queues, on behalf of an operator. The leases are revoked
// like those of a [Revoke]: conflicting grants wait until the grace of the session is over, unless SkipGrace is set.
type RevokeSession struct {
	Ref       SessionRef
	Reason    string // for people: 1 to MaxReasonLength characters
	SkipGrace bool
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r RevokeSession) Resolve() (RevokeSession, error) {
	return r, checkText("reason", r.Reason, 1, MaxReasonLength)
}

// Session returns the session.
func (r RevokeSession) Session() SessionRef { return r.Ref }

// Change marks the session as revoked, or refuses with ErrNotFound. Revoking it again changes nothing.
func (r RevokeSession) Change(s *Session, now time.Time) (Session, bool, error) {
	switch {
	case s == nil:
		return Session{}, false, UnknownSession()
	case s.Ended == Revoked:
		return *s, true, nil
	case s.Ended != 0 || s.IsOver(now):
		return Session{}, false, s.errLost(now)
	}
	return s.end(Revoked, now, r.Reason), true, nil
}

// UnknownSession returns the error of a call about a session that does not exist, or was deleted long after its end.
func UnknownSession() error {
	return &Error{Code: ErrNotFound, Detail: "There is no session of that name, or it ended long ago. List the sessions to find its name."}
}

func checkSessionID(id SessionID) error {
	if id == (SessionID{}) {
		return Invalid("session_id", "is missing; send the UUID with which the session was opened")
	}
	return nil
}

// The reasons of events about the leases and places of a session that has ended.
const (
	reasonSessionExpired = "session expired"
	reasonSessionClosed  = "session closed"
	reasonSessionRevoked = "session revoked"
)

// EndSession ends the leases that a session has of the lock Name, and removes its waiters, after the session has ended
// in the way How. It is never refused.
type EndSession struct {
	Name      string
	Ref       SessionRef
	How       Kind // as Session.Ended
	Reason    string
	SkipGrace bool
	Set       []string // of a Decision's FollowUp: the leases and places of this set, which includes Name, are ended
}

// Names returns the lock's name, or those of the set, in order.
func (e EndSession) Names() []string { return namesOf(e.Name, e.Set) }

// Refs returns nil.
func (e EndSession) Refs() []LeaseRef { return nil }

// Apply ends the session's leases and places of the lock. Those of an expired session end by time alone. Those of a
// set are ended together with the rest of the set.
func (e EndSession) Apply(v View) Decision {
	d := begin(v)
	d.applyTime()
	if e.How == Expired {
		return d.finish(nil)
	}
	home := d.lock(e.Name)
	for _, l := range home.record.Leases {
		if e.ends(&l) && !home.isSpent() {
			d.endLeaseOf(e, l.ID)
		}
	}
	for _, w := range home.record.Queue {
		if e.ends(&w.Lease) && len(home.events) < home.budget() {
			d.endWaiterOf(e, w.Lease.ID)
		}
	}
	d.promote()
	out := d.finish(nil)
	left := func(l *Lease) {
		if l.Session == e.Ref && l.Set != nil {
			rest := e
			rest.Set = l.Set
			out.FollowUp = rest
		}
	}
	for i := range home.record.Leases {
		left(&home.record.Leases[i])
	}
	for _, w := range home.record.Queue {
		left(&w.Lease)
	}
	return out
}

// ends reports whether e ends the lease or the waiter with this lease: one of the session, alone or of the set.
func (e EndSession) ends(l *Lease) bool { return l.Session == e.Ref && slices.Equal(l.Set, e.Set) }

// endLeaseOf ends the lease of the session at each lock.
func (d *decider) endLeaseOf(e EndSession, id LeaseID) {
	for _, s := range d.locks {
		l, has := s.lease(id)
		if !has || !e.ends(&l) {
			continue
		}
		if s.isUndelivered(l) {
			s.ousted = append(s.ousted, Waiter{Place: l.Place, Lease: l, Attachment: l.Attachment})
		}
		if e.How == Revoked {
			s.revoke(l, Revoke{Reason: e.Reason, SkipGrace: e.SkipGrace})
		} else {
			s.endLease(l, Released, reasonSessionClosed)
		}
	}
}

// endWaiterOf removes the waiter of the session from each queue.
func (d *decider) endWaiterOf(e EndSession, id LeaseID) {
	reason := reasonSessionClosed
	if e.How == Revoked {
		reason = reasonSessionRevoked
	}
	for _, s := range d.locks {
		if w, waits := s.waiter(id); waits && e.ends(&w.Lease) {
			s.dequeue(w, reason)
			s.ousted = append(s.ousted, w)
		}
	}
}

// Session returns the session of the call, zero for none.
func (a Acquire) Session() SessionRef { return a.SessionID.Ref() }

// Session returns the session of the call, zero for none.
func (c Claim) Session() SessionRef { return c.SessionID.Ref() }

// Session returns the session of the call, zero for none.
func (l Leave) Session() SessionRef { return l.SessionID.Ref() }

// session returns the session of a call, false if there is none.
func (d *decider) session(id SessionID) (Session, bool) {
	s, known := d.view.Sessions[id.Ref()]
	return s, known
}

// checkSession returns the refusal of a call with the session_id, or nil if it has none or can use it.
func (d *decider) checkSession(id SessionID) error {
	if id == (SessionID{}) {
		return nil
	}
	s, known := d.session(id)
	if !known {
		return errNoSession()
	}
	return s.usable(id, d.view.Now)
}

// hasLostSession reports whether the lease, or what a waiter asks for, is of a session that is over. That is decided
// by the database's clock, even if the lock's time is ahead of it: no lock decides on a session.
func (s *lockState) hasLostSession(l *Lease) bool {
	return l.Session != 0 && !s.view.Now.Before(l.ExpiresAt.Add(l.Grace))
}
