package verify

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock/lock"
)

// A state is a lock after some operations. Its queue is empty, since a wait is one operation, that
// of its grant.
type state struct {
	lock lock.Record
	// graces are revoked leases whose grace ends at an unknown time. Each may or may not block other
	// requests.
	graces []lock.Lease
	// revision is that of the newest event whose operation is done, and epoch the number of the epoch.
	revision int64
	epoch    int
}

// unknownEnd is the end of a lease whose end is unknown: a renewal without an answer may have moved
// it, or no answer mentioned the grant.
func unknownEnd() time.Time { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

// endUnknown reports whether the end of the lease is unknown.
func endUnknown(l lock.Lease) bool { return l.ExpiresAt.Year() >= 9000 }

// An operation takes effect at one point between its call and its return. It belongs to a call, or to
// the service, as its events show.
type operation struct {
	text string
	call *Call // nil if it belongs to the service
	// from and to bound when it took effect, on the recorder's clock.
	from, to time.Duration
	// before and revision are the revisions before and after it. revision is zero if the operation is not
	// a transition; before is negative if it may follow any revision.
	before, revision int64
	// epochs are the first and the last one in which it may take effect. begins is the epoch that it begins, nil if
	// it does something else.
	epochs [2]int
	begins *epoch
	// step returns the lock after the operation, false if the rules do not allow the operation.
	step func(lock.Record) (lock.Record, bool)
	// endsGrace reports whether the operation implies that the grace of a lease is over; nil if it implies
	// nothing.
	endsGrace func(grace lock.Lease) bool
	// maybe is the operation that takes effect if it can; nil if this one must.
	maybe *operation
}

// isIn notes that the operation took effect in one of the epochs.
func (o *operation) isIn(all epochs, first, last int) {
	o.epochs = [2]int{first, last}
	if first > 0 {
		o.from = max(o.from, all[first].after)
	}
	if last+1 < len(all) {
		o.to = min(o.to, all[last+1].before)
	}
}

// apply applies the operation to s.
func (o *operation) apply(s state) (bool, state) {
	if o.maybe != nil {
		if ok, next := o.maybe.apply(s); ok {
			return true, next
		}
		return true, s
	}
	if s.epoch < o.epochs[0] || s.epoch > o.epochs[1] {
		return false, s
	}
	if o.begins != nil {
		return true, s.inNextEpoch(*o.begins)
	}
	if o.before >= 0 && s.revision != o.before {
		return false, s
	}
	graces := slices.DeleteFunc(slices.Clone(s.graces),
		func(g lock.Lease) bool { return o.endsGrace != nil && o.endsGrace(g) })
	next, ok := o.step(s.lock)
	if !ok && len(graces) > 0 {
		beside := s.lock
		beside.Leases = slices.Concat(s.lock.Leases, graces)
		next, ok = o.step(beside)
	}
	if !ok {
		return false, s
	}
	after := state{lock: next, graces: graces, revision: s.revision, epoch: s.epoch}.normalized()
	if o.revision > 0 {
		after.revision = o.revision
	}
	return true, after
}

// inNextEpoch returns the lock when the epoch has begun: the ends of its leases are unknown, since their TTLs begin
// again, unless they are certainly over, and do not stay. A grant that was unclaimed is due to be withdrawn.
func (s state) inNextEpoch(e epoch) state {
	s.epoch++
	s.lock.ChangedAt = earlier(s.lock.ChangedAt, e.from)
	s.lock.Leases = slices.Clone(s.lock.Leases)
	for i := range s.lock.Leases {
		l := &s.lock.Leases[i]
		if endUnknown(*l) || l.Stays || l.ExpiresAt.Add(l.Grace).After(e.ended) {
			l.ExpiresAt = unknownEnd()
		} else {
			l.ExpiresAt = earlier(l.ExpiresAt, e.from.Add(-l.Grace))
		}
		if l.Unclaimed() {
			l.ClaimDeadline = time.Unix(0, 0)
		}
	}
	return s.normalized()
}

// normalized moves revoked leases whose grace ends at an unknown time from the leases to graces.
func (s state) normalized() state {
	unsure := func(l lock.Lease) bool { return l.Revoked() && endUnknown(l) }
	if !slices.ContainsFunc(s.lock.Leases, unsure) {
		return s
	}
	var leases []lock.Lease
	for _, l := range s.lock.Leases {
		switch {
		case !unsure(l):
			leases = append(leases, l)
		case !slices.ContainsFunc(s.graces, func(g lock.Lease) bool { return sameLease(g, l) }):
			s.graces = append(slices.Clip(s.graces), l)
		}
	}
	if s.lock.Leases = leases; len(leases) == 0 {
		s.lock.Capacity = 0
	}
	return s
}

// model returns porcupine's model of a lock with the initial state.
func model(first state) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return first },
		Step:              func(s, in, _ any) (bool, any) { return in.(*operation).apply(s.(state)) },
		Equal:             func(a, b any) bool { return sameState(a.(state), b.(state)) },
		DescribeOperation: func(in, _ any) string { return in.(*operation).text },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
}

func sameState(a, b state) bool {
	return a.revision == b.revision && a.epoch == b.epoch && a.lock.Token == b.lock.Token && a.lock.LastEnd == b.lock.LastEnd &&
		a.lock.ChangedAt.Equal(b.lock.ChangedAt) && slices.EqualFunc(a.lock.Leases, b.lock.Leases, sameLease) &&
		slices.EqualFunc(a.graces, b.graces, sameLease)
}

func sameLease(a, b lock.Lease) bool {
	return a.ID == b.ID && a.Slot == b.Slot && a.Slots == b.Slots && a.Token == b.Token && a.TTL == b.TTL && a.MaxHold == b.MaxHold && a.Suspect == b.Suspect &&
		a.ClaimDeadline.Equal(b.ClaimDeadline) &&
		a.AcquiredAt.Equal(b.AcquiredAt) && a.ExpiresAt.Equal(b.ExpiresAt)
}

// String lists the holders.
func (s state) String() string {
	if len(s.lock.Leases) == 0 {
		return "free"
	}
	text := ""
	for i, l := range s.lock.Leases {
		if i > 0 {
			text += ", "
		}
		until := clock(l.EndsAt())
		if endUnknown(l) {
			until = "an unknown time"
		}
		text += l.Holder + " until " + until
	}
	return text
}

// viewAt returns the view in which a command is applied to s at that time.
func viewAt(s lock.Record, now time.Time) lock.View {
	return lock.View{Now: now, Self: decidingReplica, Locks: []lock.Record{s}, Tokens: func() lock.Token { return 0 }}
}

// The replicas of the model: the one that decides, and the one that serves
// waiters of other replicas.
const (
	decidingReplica lock.Replica = 1
	otherReplica    lock.Replica = 2
)

// findLease returns the index of the lease with that lease_id in s, ignoring revoked leases.
func findLease(s lock.Record, id lock.LeaseID) (int, bool) {
	i := slices.IndexFunc(s.Leases, func(l lock.Lease) bool { return l.ID == id && !l.Revoked() })
	return i, i >= 0
}

// withLease returns s with the lease at index i replaced.
func withLease(s lock.Record, i int, l lock.Lease) lock.Record {
	s.Leases = slices.Clone(s.Leases)
	s.Leases[i] = l
	return s
}
