package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxSetSize is the maximum number of locks of a set.
const MaxSetSize = 32

// A Member is one lock of a set: several locks that are acquired together, all or none. A set has one LeaseID, and
// its leases begin and end at the same instants. A set holds nothing while it waits: it has a place in the queue of
// each lock, and is granted all locks in one decision, when it is next at each of them. All leases have one token,
// which is greater than all earlier tokens of each lock; only a shared lease that joins other readers has their
// token.
//
// First come, first served holds at each lock. While a set is first in the queue of a free lock and waits for its
// other locks, the waiters behind it wait, too.
type Member struct {
	Name     string
	Mode     Mode // zero: Exclusive
	Capacity int  // number of permits; Permit only
}

// resolveMembers returns the locks of a set in the order of their names, or an ErrInvalid error.
func resolveMembers(given []Member) ([]Member, error) {
	if len(given) > MaxSetSize {
		return nil, Invalid("locks", "has %d items; give 1 to %d", len(given), MaxSetSize)
	}
	set := slices.Clone(given)
	for i := range set {
		m := &set[i]
		m.Mode = cmp.Or(m.Mode, Exclusive)
		if err := cmp.Or(CheckName(m.Name), checkMode(m.Mode, m.Capacity)); err != nil {
			return nil, inMember(i, err)
		}
		if slices.ContainsFunc(set[:i], func(o Member) bool { return o.Name == m.Name }) {
			return nil, Invalid(fmt.Sprintf("locks/%d/name", i), "is given twice; name each lock once")
		}
	}
	slices.SortFunc(set, func(m, o Member) int { return strings.Compare(m.Name, o.Name) })
	return set, nil
}

// inMember returns the error of a field of the i-th lock of a set.
func inMember(i int, err error) error {
	e, ok := err.(*Error) //nolint:errorlint // this package has just made it
	if !ok {
		return err
	}
	at := fmt.Sprintf("locks/%d/", i)
	return &Error{Code: e.Code, Field: at + e.Field, Detail: at + e.Detail}
}

// resolveNames checks the names of a set and sorts them. It turns a set of one into that lock alone.
func resolveNames(name *string, set *[]string) error {
	switch n := len(*set); {
	case n == 0:
		return CheckName(*name)
	case *name != "":
		return Invalid("names", "cannot be combined with the name of one lock")
	case n > MaxSetSize:
		return Invalid("names", "has %d items; give 1 to %d", n, MaxSetSize)
	}
	for i, one := range *set {
		if err := CheckNameOf(fmt.Sprintf("names/%d", i), one); err != nil {
			return err
		}
		if slices.Contains((*set)[:i], one) {
			return Invalid(fmt.Sprintf("names/%d", i), "is given twice; name each lock once")
		}
	}
	if len(*set) == 1 {
		*name, *set = (*set)[0], nil
		return nil
	}
	*set = slices.Sorted(slices.Values(*set))
	return nil
}

// namesOf returns the locks of a command on the lock name or the set.
func namesOf(name string, set []string) []string {
	if len(set) > 0 {
		return set
	}
	return []string{name}
}

// refsOf returns the leases with the ID.
func refsOf(names []string, id LeaseID) []LeaseRef {
	refs := make([]LeaseRef, len(names))
	for i, name := range names {
		refs[i] = RefOf(name, id)
	}
	return refs
}
