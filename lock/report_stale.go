package lock

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ReportStale records that a write with the fencing token was refused because the token is stale. The lock's history
// then shows who wrote after their lease, how late, and who held the lock at that time: a Refused event.
//
// A report is a hint for people. It changes no lease, and it is limited, see paddock.StaleReports.
type ReportStale struct {
	Name  string
	Token Token  // that the writer has shown
	Slot  *int   // of its lease; nil: unknown
	Where string // for people: what refused the write, such as a table; up to MaxWhereLength characters

	// Lease is the lease that had the token, as far as it is known. The service sets it, see paddock.FindHold.
	Lease Hold
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r ReportStale) Resolve() (ReportStale, error) {
	err := cmp.Or(CheckName(r.Name), checkToken(r.Token), checkSlot(r.Slot))
	if r.Where != "" {
		err = cmp.Or(err, checkText("where", r.Where, 1, MaxWhereLength))
	}
	return r, err
}

// Names returns the lock's name.
func (r ReportStale) Names() []string { return []string{r.Name} }

// Traits returns those of a command that compares a token.
func (r ReportStale) Traits() Traits { return Traits{ReadsToken: true} }

// In returns r: a report is about one lock alone.
func (r ReportStale) In(*Policy) (Command, error) { return r, nil }

// Apply emits a Refused event. The token of the View's lock must not be provisional: it is compared with the reported
// one. It refuses with ErrTokenMismatch if the token is current, and with ErrUnknownToken if it was never granted.
func (r ReportStale) Apply(v View) Decision {
	d := begin(v, nil)
	d.applyTime()
	s := d.locks[0]
	if known := v.Locks[0].Token; r.Token > known { // this decision may have granted a greater one, which is provisional
		return d.finish(CheckFence(r.Token, 0, known))
	}
	switch (Verify{Name: r.Name, Token: r.Token, Slot: r.Slot}).Check(s.record, s.view.Now).Status { // what has ended is gone
	case Current:
		return d.finish(&Error{Code: ErrTokenMismatch, Token: r.Token, Newest: s.record.Token,
			Detail: fmt.Sprintf("Token %d is current: its lease has not ended, so there is nothing to record. "+
				"Check name and fencing_token, and how the resource compares tokens.", r.Token)})
	}
	e := Event{Kind: Refused, Reason: r.Where, Newest: s.record.Token, Caller: s.view.Caller}
	if !r.Lease.EndedAt.IsZero() {
		e.Late = max(s.now.Sub(r.Lease.EndedAt), 0)
	}
	if l, held := s.record.firstUnrevoked(); held {
		e.HeldBy = l.Holder
	}
	slot := r.Lease.Slot
	if r.Slot != nil {
		slot = *r.Slot
	}
	s.emit(e, Lease{Slot: slot, Mode: cmp.Or(r.Lease.Mode, Exclusive), Holder: r.Lease.Holder, Token: r.Token})
	return d.finish(nil)
}

// A Hold is a lease in the events of its lock, from its grant to its end.
type Hold struct {
	Slot   int
	Slots  Slots // of several permits; otherwise empty
	Mode   Mode
	Holder string
	Token  Token
	// GrantedAt is the instant of the grant. It is zero if the events begin after the grant.
	GrantedAt time.Time
	// EndedAt is when the end was recorded: for Expired after the grace, a moment late if no client used the lock. It
	// is zero while no end is known.
	EndedAt time.Time
	End     Kind   // Released, Expired, Revoked or Withdrawn; zero while no end is known
	Reason  string // of a Revoked or Withdrawn end
	// RevokedBy is the name of the API key that revoked the lease; empty in a service without keys.
	RevokedBy string
}

// Explanation returns why the lease ended, and who revoked it.
func (h Hold) Explanation() string {
	if h.RevokedBy == "" {
		return h.Reason
	}
	return fmt.Sprintf("%s (revoked by %s)", h.Reason, h.RevokedBy)
}

// NotStale reports whether err says that a reported token is not stale for its lock. A resource may refuse such a
// token if it has seen a greater one of another lock.
func NotStale(err error) bool {
	return errors.Is(err, ErrTokenMismatch) || errors.Is(err, ErrUnknownToken)
}

// Stale returns the report of a write that was refused with err, false if the token was not stale.
func (w FencedWrite) Stale(err error) (ReportStale, bool) {
	r := ReportStale{Name: w.Lock, Token: w.Token, Where: "fenced value " + w.Key}
	if w.Slot > 0 {
		r.Slot = &w.Slot
	}
	return r, errors.Is(err, ErrStaleToken)
}
