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
// without a Mode has the Mode, Capacity and Permits of the Options.
//
// If the error is lock.ErrHeld, Blocked of the *lock.Error lists the locks that could not be granted.
func AcquireAll(ctx context.Context, locks paddock.Service, members []lock.Member, o Options) (*Lease, error) {
	return acquire(ctx, locks, members, o, newClock())
}

// AcquireAllUnmanaged acquires several locks, all or none, like AcquireUnmanaged.
func AcquireAllUnmanaged(ctx context.Context, locks paddock.Service, members []lock.Member, o Options) (lock.Grant, error) {
	o, err := o.resolve()
	if err != nil {
		return lock.Grant{}, err
	}
	if o.LeaseIDFile != "" {
		return lock.Grant{}, lock.Invalid("LeaseIDFile", "is for leases that this process renews; use Acquire")
	}
	if o.Task == "" {
		o.Task = unmanagedTask(ctx, o)
	}
	g, _, err := newAcquirer(locks, members, o, newClock()).observed(ctx)
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

// withModes returns the members with the mode of the Options where they have none, and their names in order.
func withModes(members []lock.Member, o Options) (_ []lock.Member, names []string) {
	members = slices.Clone(members)
	for i := range members {
		m := &members[i]
		if m.Mode == 0 {
			m.Mode, m.Capacity, m.Permits = o.Mode, cmp.Or(m.Capacity, o.Capacity), cmp.Or(m.Permits, o.Permits)
		}
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return members, names
}

// joined returns the names, for the Observer and for errors.
func joined(names []string) string { return strings.Join(names, ",") }

// A Member is one lock of a Lease, or of a grant.
type Member struct {
	Name  string
	Mode  lock.Mode
	Slot  int        // of a permit or a shared lease, starting at 1; 0 for an exclusive lease
	Slots lock.Slots // of several permits; otherwise empty
	Token lock.Token
}

// MembersOf returns the locks of a grant, in the order of their names.
func MembersOf(g lock.Grant) []Member {
	members := make([]Member, len(g.Leases))
	for i, m := range g.Leases {
		members[i] = Member{Name: m.Name, Mode: m.Mode, Slot: m.Slot, Slots: m.Slots, Token: m.Token}
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
