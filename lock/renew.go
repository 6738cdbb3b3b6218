package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"
)

// Renew moves a lease's end to a TTL from now, never to an earlier instant than
// it has and never beyond the lease's MaxHold. It does not accumulate. It works
// in the lease's grace, and never after.
type Renew struct {
	Name    string
	LeaseID LeaseID
	TTL     time.Duration // zero: the TTL that the lease has; else it has this one from now on
	// Metadata is what the lease's is from now on, a JSON object; nil: what it has.
	Metadata json.RawMessage
}

// Resolve returns r, or an ErrInvalid error that names the field that breaks a bound.
func (r Renew) Resolve(b Bounds) (Renew, error) {
	if r.TTL != 0 {
		if err := checkDuration("ttl_ms", r.TTL, b.MinTTL, b.MaxTTL); err != nil {
			return r, err
		}
	}
	return r, cmp.Or(CheckName(r.Name), checkLeaseID(r.LeaseID), checkMetadata(r.Metadata))
}

func checkLeaseID(id LeaseID) error {
	if id == (LeaseID{}) {
		return Invalid("lease_id", "is missing; send the UUID that acquire returned")
	}
	return nil
}

// Names returns the lock's name.
func (r Renew) Names() []string { return []string{r.Name} }

// Refs returns the lease of r.
func (r Renew) Refs() []LeaseRef { return []LeaseRef{RefOf(r.Name, r.LeaseID)} }

// Needs allows for the end of a lease found to be over, or for other metadata.
func (r Renew) Needs() (tokens, events int) { return 0, 1 }

// Apply moves the end of the lease, or refuses with ErrLeaseLost. Other metadata
// is a transition, so that whoever watches the lock sees it.
func (r Renew) Apply(v View) Decision {
	t := newDecider(v)
	l, ok := t.lease(r.LeaseID)
	if !ok {
		return t.finish(t.errLost(r.LeaseID))
	}
	l = t.claim(l, 0) // its holder knows of it
	l.TTL = cmp.Or(r.TTL, l.TTL)
	l.ExpiresAt = l.expiryFrom(t.now)
	if !t.now.Before(l.ExpiresAt) {
		return t.finish(&Error{Code: ErrLeaseLost, Ended: Expired, EndedAt: l.ExpiresAt, Token: l.Token,
			Detail: "The lease has reached its max_hold_ms and cannot be renewed. Stop the work; to go on, acquire with a new lease_id."})
	}
	proclaims := r.Metadata != nil && !bytes.Equal(r.Metadata, l.Metadata)
	if proclaims {
		l.Metadata = r.Metadata
	}
	t.replaceLease(l)
	if proclaims {
		t.emit(Event{Kind: MetadataUpdated}, l)
	}
	return t.finishWithLease(l, false)
}
