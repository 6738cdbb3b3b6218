package history

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock/lock"
)

// A state is a lock as an order of operations would have left it. Its queue is
// empty: a wait is one operation, that of its grant.
type state struct {
	lock lock.State
	// revision is that of the last event whose operation is done.
	revision int64
}

// openEnd is the end of a lease of which it is not known when it ends: somebody may
// have renewed it whose answer was lost, or nobody was told of its grant.
func openEnd() time.Time { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

func isOpen(l lock.Lease) bool { return l.ExpiresAt.Year() >= 9000 }

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
	step func(lock.State) (lock.State, bool)
	// perhaps is the operation that takes effect if it can; nil if this one must.
	perhaps *operation
}

// do applies the operation.
func (o *operation) do(s state) (bool, state) {
	if o.perhaps != nil {
		if ok, next := o.perhaps.do(s); ok {
			return true, next
		}
		return true, s
	}
	if o.before >= 0 && s.revision != o.before {
		return false, s
	}
	next, ok := o.step(s.lock)
	if !ok {
		return false, s
	}
	after := state{lock: next, revision: s.revision}
	if o.revision > 0 {
		after.revision = o.revision
	}
	return true, after
}

// model is a lock for porcupine, that begins in that state.
func model(first state) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return first },
		Step:              func(s, in, _ any) (bool, any) { return in.(*operation).do(s.(state)) },
		Equal:             func(a, b any) bool { return same(a.(state), b.(state)) },
		DescribeOperation: func(in, _ any) string { return in.(*operation).text },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
}

func same(a, b state) bool {
	return a.revision == b.revision && a.lock.Token == b.lock.Token && a.lock.End == b.lock.End &&
		a.lock.ChangedAt.Equal(b.lock.ChangedAt) && slices.EqualFunc(a.lock.Leases, b.lock.Leases, sameLease)
}

func sameLease(a, b lock.Lease) bool {
	return a.ID == b.ID && a.Slot == b.Slot && a.Token == b.Token && a.TTL == b.TTL && a.MaxHold == b.MaxHold && a.ClaimBy.Equal(b.ClaimBy) &&
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
		until := clock(l.OverAt())
		if isOpen(l) {
			until = "nobody knows when"
		}
		text += l.Holder + " until " + until
	}
	return text
}

// view is what a command sees of s at that instant.
func view(s lock.State, now time.Time) lock.View {
	return lock.View{Now: now, Self: here, Locks: []lock.State{s}, Tokens: func() lock.Token { return 0 }}
}

// The replicas of the model: the one that decides, and the one that serves who
// waits elsewhere.
const (
	here  lock.Replica = 1
	there lock.Replica = 2
)

// find returns the place of the lease with that lease_id among those of s.
func find(s lock.State, id lock.LeaseID) (int, bool) {
	i := slices.IndexFunc(s.Leases, func(l lock.Lease) bool { return l.ID == id })
	return i, i >= 0
}

// with returns s with that lease in place of the one at i.
func with(s lock.State, i int, l lock.Lease) lock.State {
	s.Leases = slices.Clone(s.Leases)
	s.Leases[i] = l
	return s
}
