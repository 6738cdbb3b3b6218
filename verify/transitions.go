package verify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A birth is how a lease began, as far as it is known.
type birth int

const (
	atOnce  birth = iota // told, and begun at the instant of its event
	fetched              // told, and begun when it was fetched
	open                 // nobody knows from when its TTL runs
)

// birth returns how the lease began, and the answer that tells.
func (t *tale) birth(l *lease) (birth, lock.Grant) {
	told := l.first()
	if len(l.told) > 0 {
		told = l.told[0]
	}
	if told == nil || l.shaken(t) {
		return open, lock.Grant{}
	}
	g := grant(told)
	if l.granted != nil && g.AcquiredAt.After(l.granted.At) && l.granted.Place != 0 {
		return fetched, g
	}
	return atOnce, g
}

// want returns what is asked for under the lease, with the TTL that was answered.
func (l *lease) want(t *tale, g lock.Grant) lock.Acquire {
	a, ok := l.of.asked()
	if !ok { // nobody is known to have asked: let it be somebody
		a = lock.Acquire{Mode: l.mode, Holder: l.holder, LeaseID: lock.LeaseID{0xff, byte(l.token >> 8), byte(l.token)}, Capacity: max(t.capacity, 0)}
	}
	a.Name, a.Wait, a.KeepPlace = t.name, 0, false
	a.TTL = cmp.Or(a.TTL, g.TTL, time.Hour)
	if a.Mode != lock.Permit {
		a.Capacity = 0
	}
	return a
}

// granting returns the operation of a grant.
func (t *tale) granting(l *lease) *operation {
	b, g := t.birth(l)
	a := l.want(t, g)
	at := g.AcquiredAt
	if l.granted != nil {
		at = l.granted.At
	}
	o := &operation{text: fmt.Sprintf("grant %s to %q with token %d", l.mode, l.holder, l.token)}
	o.after = func(g lock.Lease) bool { return conflict(g.Mode, l.mode) || g.Slot == l.slot }
	if l.granted != nil {
		o.revision = l.granted.Revision
	}
	o.step = func(s lock.Record) (lock.Record, bool) {
		s.Leases = slices.DeleteFunc(slices.Clone(s.Leases), func(g lock.Lease) bool { // it may be over
			return g.Revoked() && isOpen(g) && g.Slot > l.slot
		})
		if len(s.Leases) > 0 {
			s.Capacity = cmp.Or(s.Capacity, a.Capacity)
		}
		v := view(s, at)
		newest := s.Token
		v.Tokens = func() lock.Token {
			if l.token > newest {
				return l.token
			}
			return 0
		}
		if b == fetched {
			return t.offer(v, a, l)
		}
		d := a.Apply(v)
		next := d.Locks[0]
		if d.Err != nil || !l.is(d.Grant) || !d.Now.Equal(at) {
			return s, false
		}
		i, _ := find(next, a.LeaseID)
		next = with(next, i, d.Grant)
		if l.granted != nil {
			next.Leases[i].Place = l.granted.Place
		}
		if b == open {
			next.Leases[i].ExpiresAt = openEnd()
		}
		return next, true
	}
	return o
}

// is whether g is the lease, by its token and slot.
func (l *lease) is(g lock.Lease) bool { return g.Token == l.token && g.Slot == l.slot }

// waits is the attachment of a call that waits elsewhere.
const waits lock.Attachment = 1

// offer grants the lock to a call that waits with another replica.
func (t *tale) offer(v lock.View, a lock.Acquire, l *lease) (lock.Record, bool) {
	s, later := v.Locks[0], v.Now.Add(time.Hour)
	w := lock.Waiter{
		Place: l.granted.Place, Capacity: a.Capacity, Attachment: waits, Replica: there, Until: later, AliveUntil: later, KeptUntil: later,
		Lease: lock.Lease{
			ID: a.LeaseID, Name: a.Name, Mode: a.Mode, Holder: a.Holder, TTL: a.TTL, Grace: a.Grace, MaxHold: a.MaxHold,
		},
	}
	s.Queue = []*lock.Waiter{&w}
	v.Locks = []lock.Record{s}
	d := lock.Sweep{Name: t.name}.Apply(v)
	next := d.Locks[0]
	next.Queue = nil
	i, ok := find(next, a.LeaseID)
	return next, ok && l.is(next.Leases[i]) && d.Now.Equal(v.Now)
}

// fetching returns the operation by which a grant to a call that waits is fetched.
func (t *tale) fetching(l *lease, g lock.Grant) *operation {
	return &operation{
		text: fmt.Sprintf("fetch token %d", l.token), before: -1,
		step: func(s lock.Record) (lock.Record, bool) {
			d := lock.Claim{Name: t.name, LeaseID: l.of.id, Attachment: waits}.Apply(view(s, g.AcquiredAt))
			i, ok := find(s, l.of.id)
			if !ok || d.Err != nil || d.Queued || !l.is(d.Grant) || !d.Grant.AcquiredAt.Equal(g.AcquiredAt) {
				return s, false
			}
			return with(s, i, d.Grant), true
		},
	}
}

// passing returns the operation by which time ends leases: those of events that
// follow one another and are of one instant.
func (t *tale) passing(ended []*lease) *operation {
	last := ended[len(ended)-1].ended
	o := &operation{revision: last.Revision}
	for i, l := range ended {
		if i > 0 {
			o.text += ", "
		}
		o.text += fmt.Sprintf("%s: token %d", l.ended.Kind, l.token)
	}
	o.step = func(s lock.Record) (lock.Record, bool) {
		if slices.ContainsFunc(ended, func(l *lease) bool { return l.toBeRenewed(s) }) {
			return s, false
		}
		past := s
		past.Leases = slices.Clone(s.Leases)
		for i, l := range past.Leases {
			if isOpen(l) && slices.ContainsFunc(ended, func(e *lease) bool { return e.is(l) }) {
				past.Leases[i].ExpiresAt, past.Leases[i].Grace = last.At, 0
			}
		}
		d := lock.Sweep{Name: t.name}.Apply(view(past, last.At))
		if len(d.Events) != len(ended) || !d.Now.Equal(last.At) {
			return s, false
		}
		for _, e := range d.Events {
			if !slices.ContainsFunc(ended, func(l *lease) bool { return l.token == e.Token && l.slot == e.Slot }) {
				return s, false
			}
		}
		return d.Locks[0], true
	}
	return o
}

// ending returns the operation by which somebody ends the lease: its holder, an
// operator, or the service, which withdraws what nobody was told of.
func (t *tale) ending(l *lease) *operation {
	e := l.ended
	o := &operation{text: fmt.Sprintf("%s: token %d of %q", e.Kind, l.token, l.holder), revision: e.Revision}
	o.step = func(s lock.Record) (lock.Record, bool) {
		i := slices.IndexFunc(s.Leases, func(g lock.Lease) bool { return l.is(g) && !g.Revoked() })
		if i < 0 || l.toBeRenewed(s) {
			return s, false
		}
		var c lock.Command
		switch e.Kind {
		case lock.Released:
			c = lock.Release{Name: t.name, LeaseID: s.Leases[i].ID}
		case lock.Revoked:
			atOnce, known := t.revokedAtOnce(l)
			open := isOpen(s.Leases[i]) // it may have been in its grace, or nobody knew of it
			next, ok := t.revocation(l, atOnce, s)
			if j := slices.IndexFunc(next.Leases, l.is); ok && j >= 0 && (open || !known) {
				left := next.Leases[j]
				left.ExpiresAt = openEnd()
				next = with(next, j, left)
			}
			return next, ok
		default:
			c = lock.Leave{Name: t.name, LeaseID: s.Leases[i].ID, Attachment: s.Leases[i].Attachment, Disconnected: true}
		}
		d := c.Apply(view(s, e.At))
		return d.Locks[0], l.endsBy(d)
	}
	return o
}

// revocation returns s after the revocation that the event of the lease tells of.
func (t *tale) revocation(l *lease, atOnce bool, s lock.Record) (lock.Record, bool) {
	r := lock.Revoke{Name: t.name, Token: l.token, Slot: &l.slot, Reason: l.ended.Reason, SkipGrace: atOnce}
	d := r.Apply(view(s, l.ended.At))
	return d.Locks[0], l.endsBy(d)
}

// endsBy reports whether the decision is the end of the lease, as its event tells.
func (l *lease) endsBy(d lock.Decision) bool {
	return d.Err == nil && len(d.Events) == 1 && d.Events[0].Kind == l.ended.Kind && d.Now.Equal(l.ended.At)
}

// skipping returns the operation by which an operator skips the rest of the grace of a
// revoked lease.
func (t *tale) skipping(l *lease) *operation {
	e := l.skipped
	o := &operation{text: fmt.Sprintf("skip the grace of token %d of %q", l.token, l.holder), revision: e.Revision, after: l.is}
	o.step = func(s lock.Record) (lock.Record, bool) {
		if s.ChangedAt = e.At; !slices.ContainsFunc(s.Leases, l.is) {
			return s, true // its grace is among those that are not known
		}
		d := lock.Revoke{Name: t.name, Token: l.token, Slot: &l.slot, Reason: e.Reason, SkipGrace: true}.Apply(view(s, e.At))
		return d.Locks[0], d.Err == nil && len(d.Events) == 1
	}
	return o
}

// toBeRenewed is whether the lease has not got the end yet that its holder was told,
// and so is not to be ended before that.
func (l *lease) toBeRenewed(s lock.Record) bool {
	end, by := l.promised()
	return by != nil && slices.ContainsFunc(s.Leases, func(g lock.Lease) bool {
		return l.is(g) && !isOpen(g) && g.ExpiresAt.Add(g.Grace).Before(end)
	})
}
