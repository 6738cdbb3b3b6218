package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxSetSize is the maximum number of locks of a set.
const MaxSetSize = 32

// A Member is one of the locks that an Acquire asks for, all or none. They have one LeaseID, and their leases begin and
// end at the same instants. While they are waited for, none of them is held: the call has a place in the queue of each
// lock, and is granted all locks in one decision, when it is next at each of them. All leases have one token, which is
// greater than all earlier tokens of each lock; only a shared lease that joins other readers has their token.
//
// First come, first served holds at each lock. While a call is first in the queue of a free lock and waits for its
// other locks, the waiters behind it wait, too.
type Member struct {
	Name     string
	Mode     Mode // zero: Exclusive
	Capacity int  // number of permits, 1 to MaxHolders; Permit only
}

// One returns the lock of that name, to be acquired alone and exclusively.
func One(name string) []Member { return []Member{{Name: name}} }

// resolveMembers returns the locks of an acquire in the order of their names, or an ErrInvalid error.
func resolveMembers(given []Member) ([]Member, error) {
	if err := checkCount("locks", len(given)); err != nil {
		return nil, err
	}
	locks := slices.Clone(given)
	for i := range locks {
		m := &locks[i]
		m.Mode = cmp.Or(m.Mode, Exclusive)
		if err := cmp.Or(CheckName(m.Name), checkMode(m.Mode, m.Capacity)); err != nil && len(locks) > 1 {
			return nil, inMember(i, err)
		} else if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(locks[:i], func(o Member) bool { return o.Name == m.Name }) {
			return nil, Invalid(fmt.Sprintf("locks/%d/name", i), "is given twice; name each lock once")
		}
	}
	slices.SortFunc(locks, func(m, o Member) int { return strings.Compare(m.Name, o.Name) })
	return locks, nil
}

// inMember returns the error of a field of the i-th of several locks.
func inMember(i int, err error) error {
	e, ok := err.(*Error) //nolint:errorlint // this package has just made it
	if !ok {
		return err
	}
	at := fmt.Sprintf("locks/%d/", i)
	return &Error{Code: e.Code, Field: at + e.Field, Detail: at + e.Detail}
}

// resolveNames returns the locks of a renewal or a release in order, or an ErrInvalid error.
func resolveNames(given []string) ([]string, error) {
	if len(given) == 1 {
		return given, CheckName(given[0])
	}
	if err := checkCount("names", len(given)); err != nil {
		return nil, err
	}
	for i, name := range given {
		field := fmt.Sprintf("names/%d", i)
		if err := CheckNameOf(field, name); err != nil {
			return nil, err
		}
		if slices.Contains(given[:i], name) {
			return nil, Invalid(field, "is given twice; name each lock once")
		}
	}
	return slices.Sorted(slices.Values(given)), nil
}

func checkCount(field string, n int) error {
	if n < 1 || n > MaxSetSize {
		return Invalid(field, "has %d items; give 1 to %d", n, MaxSetSize)
	}
	return nil
}
