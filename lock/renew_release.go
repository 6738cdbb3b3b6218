package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"
)

// Renew sets the expiry of a lease to now plus its TTL, but never to an earlier expiry than the current one, and never
// beyond the lease's MaxHold. It works until the end of the grace. It does not revive a lease that has ended. It moves no
// lease of a session: that is renewed by a RenewSession.
type Renew struct {
	Name    string
	LeaseID LeaseID
	TTL     time.Duration // the lease's new TTL, within the Bounds; zero: unchanged
	// Metadata replaces the lease's metadata: a JSON object of up to MaxMetadataSize bytes; nil: unchanged.
	Metadata json.RawMessage
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r Renew) Resolve(b Bounds) (Renew, error) {
	if r.TTL != 0 {
		if err := checkDuration("ttl_ms", r.TTL, b.MinTTL, b.MaxTTL); err != nil {
			return r, err
		}
	}
	return r, cmp.Or(CheckName(r.Name), checkLeaseID(r.LeaseID), checkMetadata(r.Metadata))
}

// Names returns the lock's name.
func (r Renew) Names() []string { return []string{r.Name} }

// Refs returns the lease of r.
func (r Renew) Refs() []LeaseRef { return []LeaseRef{RefOf(r.Name, r.LeaseID)} }

// Tokens returns 0.
func (r Renew) Tokens() int { return 0 }

// Apply extends the lease, or refuses with ErrLeaseLost. New metadata emits an event, so that watchers see it.
func (r Renew) Apply(v View) Decision {
	d := newDecider(v)
	l, ok := d.lease(r.LeaseID)
	if !ok {
		return d.finish(d.errLost(r.LeaseID))
	}
	if l.Session != 0 && r.TTL != 0 {
		return d.finish(Invalid("ttl_ms", "cannot be given for a lease of a session, which ends with it; renew the session instead"))
	}
	left := l.ExpiresAt.Sub(d.now)
	l = d.claim(l, 0) // a client that renews knows of the lease, so no call may withdraw it
	l.TTL = cmp.Or(r.TTL, l.TTL)
	l.ExpiresAt = l.expiryFrom(d.now)
	if own := l.OwnExpiry(); !own.IsZero() && !d.now.Before(own) {
		return d.finish(&Error{Code: ErrLeaseLost, Ended: Expired, EndedAt: own, Token: l.Token,
			Detail: "The lease has reached its max_hold_ms and cannot be renewed. " +
				"Stop the work; to continue, acquire with a new lease_id."})
	}
	updates := r.Metadata != nil && !bytes.Equal(r.Metadata, l.Metadata)
	if updates {
		l.Metadata = r.Metadata
	}
	d.replaceLease(l)
	if updates {
		d.emit(Event{Kind: MetadataUpdated}, l)
	}
	out := d.finishWithLease(l, false)
	out.Renewed, out.Left = true, left
	return out
}

// Release ends a lease, or removes the waiter of its LeaseID from the queue. Releasing it again succeeds and changes
// nothing. A lease that ended in another way is refused with ErrLeaseLost, because the work may have overlapped with
// that of another holder.
type Release struct {
	Name    string
	LeaseID LeaseID
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r Release) Resolve() (Release, error) {
	return r, cmp.Or(CheckName(r.Name), checkLeaseID(r.LeaseID))
}

// Names returns the lock's name.
func (r Release) Names() []string { return []string{r.Name} }

// Refs returns the lease of r.
func (r Release) Refs() []LeaseRef { return []LeaseRef{RefOf(r.Name, r.LeaseID)} }

// Tokens returns 0.
func (r Release) Tokens() int { return 0 }

// Apply ends the lease, or refuses with ErrLeaseLost.
func (r Release) Apply(v View) Decision {
	d := newDecider(v)
	l, ok := d.lease(r.LeaseID)
	if ok {
		d.endLease(l, Released, "")
		d.promote()
		return d.finish(nil)
	}
	if w, waits := d.waiter(r.LeaseID); waits {
		d.dequeue(w, reasonPlaceReleased)
		return d.finish(nil)
	}
	if e, ended := d.endOf(r.LeaseID); ended && e.Kind == Released || d.placeReleased(r.LeaseID) {
		return d.finish(nil)
	}
	return d.finish(d.errLost(r.LeaseID))
}
