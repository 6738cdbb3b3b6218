package verify

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock/lock"
)

// A state is a lock as an order of operations would have left it. Its queue is
// empty: a wait is one operation, that of its grant.
type state struct {
	lock lock.Record
	// graces are revoked leases of which it is not known when their grace is over, or was.
	// Each may keep others out, or not.
	graces []lock.Lease
	// revision is that of the last event whose operation is done.
	revision int64
}

// unknownEnd is the end of a lease of which it is not known when it ends: somebody may
// have renewed it whose answer was lost, or nobody was told of its grant.
func unknownEnd() time.Time { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

func endUnknown(l lock.Lease) bool { return l.ExpiresAt.Year() >= 9000 }

// An operation is what took effect at one point between its call and its return. It
// is that of a call, or of the service, as its events tell.
type operation struct {
	text string
	call *Call // nil if it is the service's own
	// from and to are when it may have taken effect, on the recorder's clock.
	from, to time.Duration
	// before and revision are the revisions before and after; revision is zero if the
	// operation is no transition, and before is negative if any will do.
	before, revision int64
	// step returns the state after the operation, false if the rules do not allow it.
	step func(lock.Record) (lock.Record, bool)
	// endsGrace reports whether the operation happens only when the grace of a lease is over; nil if
	// it is endsGrace none.
	endsGrace func(grace lock.Lease) bool
	// maybe is the operation that takes effect if it can; nil if this one must.
	maybe *operation
}

// apply applies the operation.
func (o *operation) apply(s state) (bool, state) {
	if o.maybe != nil {
		if ok, next := o.maybe.apply(s); ok {
			return true, next
		}
		return true, s
	}
	if o.before >= 0 && s.revision != o.before {
		return false, s
	}
	graces := slices.DeleteFunc(slices.Clone(s.graces), func(g lock.Lease) bool { return o.endsGrace != nil && o.endsGrace(g) })
	next, ok := o.step(s.lock)
	if !ok && len(graces) > 0 {
		beside := s.lock
		beside.Leases = slices.Concat(s.lock.Leases, graces)
		next, ok = o.step(beside)
	}
	if !ok {
		return false, s
	}
	after := state{lock: next, graces: graces, revision: s.revision}.normalized()
	if o.revision > 0 {
		after.revision = o.revision
	}
	return true, after
}

// normalized returns s with those of its leases among the graces that belong there.
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

// model is a lock for porcupine, that begins in that state.
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
	return a.revision == b.revision && a.lock.Token == b.lock.Token && a.lock.LastEnd == b.lock.LastEnd &&
		a.lock.ChangedAt.Equal(b.lock.ChangedAt) && slices.EqualFunc(a.lock.Leases, b.lock.Leases, sameLease) &&
		slices.EqualFunc(a.graces, b.graces, sameLease)
}

func sameLease(a, b lock.Lease) bool {
	return a.ID == b.ID && a.Slot == b.Slot && a.Token == b.Token && a.TTL == b.TTL && a.MaxHold == b.MaxHold && a.ClaimDeadline.Equal(b.ClaimDeadline) &&
		a.AcquiredAt.Equal(b.AcquiredAt) && a.ExpiresAt.Equal(b.ExpiresAt)
}

// String says who has the lock.
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
			until = "nobody knows when"
		}
		text += l.Holder + " until " + until
	}
	return text
}

// viewAt is what a command sees of s at that instant.
func viewAt(s lock.Record, now time.Time) lock.View {
	return lock.View{Now: now, Self: decidingReplica, Locks: []lock.Record{s}, Tokens: func() lock.Token { return 0 }}
}

// The replicas of the model: the one that decides, and the one that serves who
// waits elsewhere.
const (
	decidingReplica lock.Replica = 1
	otherReplica    lock.Replica = 2
)

// findLease returns the place of the lease with that lease_id among those of s that were not
// revoked.
func findLease(s lock.Record, id lock.LeaseID) (int, bool) {
	i := slices.IndexFunc(s.Leases, func(l lock.Lease) bool { return l.ID == id && !l.Revoked() })
	return i, i >= 0
}

// withLease returns s with that lease in place of the one at i.
func withLease(s lock.Record, i int, l lock.Lease) lock.Record {
	s.Leases = slices.Clone(s.Leases)
	s.Leases[i] = l
	return s
}
