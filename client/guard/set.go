package guard

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// AcquireAll acquires several locks, all or none, like Acquire: the Lease has one renewal and one deadline for all of
// them, it is lost as a whole, and Release releases all. No lock is held while the others are waited for. A member
// without a Mode has the Mode and Capacity of the Options. A set of one lock is that lock alone.
//
// If the error is lock.ErrHeld, Blocked of the *lock.Error lists the locks that could not be granted.
func AcquireAll(ctx context.Context, locks paddock.Service, members []lock.Member, o Options) (*Lease, error) {
	return acquire(ctx, locks, members, o, newClock())
}

// AcquireAllUnmanaged acquires several locks, all or none, like AcquireUnmanaged. Renew and release them by the Set of
// lock.Renew and lock.Release.
func AcquireAllUnmanaged(ctx context.Context, locks paddock.Service, members []lock.Member, o Options) (lock.Grant, error) {
	o, err := o.resolve()
	if err != nil {
		return lock.Grant{}, err
	}
	if o.Task == "" {
		o.Task = unmanagedTask(ctx, o)
	}
	a, err := newAcquirer(locks, members, o, newClock())
	if err != nil {
		return lock.Grant{}, err
	}
	g, _, err := a.observed(ctx)
	return g, err
}

// DoAll acquires several locks, all or none, runs the work, and releases them, like Do.
//
//	accounts := []lock.Member{{Name: "accounts:17"}, {Name: "accounts:42"}}
//	err := guard.DoAll(ctx, locks, accounts, guard.Options{Wait: time.Minute}, transfer)
func DoAll(
	ctx context.Context, locks paddock.Service, members []lock.Member, o Options, work func(context.Context, *Lease) error,
) error {
	l, err := AcquireAll(ctx, locks, members, o)
	if err != nil {
		return err
	}
	return l.do(ctx, work)
}

// alone returns the lock with the name as a set of one.
func alone(name string) []lock.Member { return []lock.Member{{Name: name}} }

// A target is what a lease is for: one lock, or several that are acquired together.
type target []lock.Member

// targetOf returns the members with the mode of the Options where they have none.
func targetOf(members []lock.Member, o Options) (target, error) {
	if len(members) == 0 {
		return nil, lock.Invalid("locks", "is empty; give 1 to %d", lock.MaxSetSize)
	}
	t := slices.Clone(target(members))
	for i := range t {
		if m := &t[i]; m.Mode == 0 {
			m.Mode, m.Capacity = o.Mode, cmp.Or(m.Capacity, o.Capacity)
		}
	}
	return t, nil
}

// names returns the names in order.
func (t target) names() []string {
	names := make([]string, len(t))
	for i, m := range t {
		names[i] = m.Name
	}
	slices.Sort(names)
	return names
}

// String returns the names, for the Observer and for errors.
func (t target) String() string { return strings.Join(t.names(), ",") }

// acquire sets the locks of a request.
func (t target) acquire(a lock.Acquire) lock.Acquire {
	if len(t) == 1 {
		a.Name, a.Mode, a.Capacity = t[0].Name, t[0].Mode, t[0].Capacity
	} else {
		a.Set = t
	}
	return a
}

// renewal sets the locks of a renewal.
func (t target) renewal(r lock.Renew) lock.Renew {
	if len(t) == 1 {
		r.Name = t[0].Name
	} else {
		r.Set = t.names()
	}
	return r
}

// release returns the release of the lease or the places with the id.
func (t target) release(id lock.LeaseID) lock.Release {
	if len(t) == 1 {
		return lock.Release{Name: t[0].Name, LeaseID: id}
	}
	return lock.Release{Set: t.names(), LeaseID: id}
}

// A Member is one lock of a Lease, or of a grant.
type Member struct {
	Name  string
	Mode  lock.Mode
	Slot  int // of a permit or a shared lease, starting at 1; 0 for an exclusive lease
	Token lock.Token
}

// MembersOf returns the locks of a grant, in the order of their names: several if it is of a set, otherwise one.
func MembersOf(g lock.Grant) []Member {
	granted := g.Members
	if len(granted) == 0 {
		granted = []lock.Lease{g.Lease}
	}
	members := make([]Member, len(granted))
	for i, m := range granted {
		members[i] = Member{Name: m.Name, Mode: m.Mode, Slot: m.Slot, Token: m.Token}
	}
	return members
}

// Members returns the locks of the lease, in the order of their names: several after AcquireAll, otherwise one.
func (l *Lease) Members() []Member { return slices.Clone(l.members) }

// TokenOf returns the fencing token of one of the locks, or zero if the lease has no lock of that name. All locks of
// a set have the same token, except a shared lock that joins other readers: it has their token.
func (l *Lease) TokenOf(name string) lock.Token {
	for _, m := range l.members {
		if m.Name == name {
			return m.Token
		}
	}
	return 0
}
