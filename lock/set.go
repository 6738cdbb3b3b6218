package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxSetSize is the maximum number of locks of a set.
const MaxSetSize = 32

// resolveMembers returns the locks of an acquire in the order of their names, or an ErrInvalid error.
func resolveMembers(given []Member) ([]Member, error) {
	if err := checkCount("locks", len(given)); err != nil {
		return nil, err
	}
	locks := slices.Clone(given)
	for i := range locks {
		m := &locks[i]
		m.Mode = cmp.Or(m.Mode, Exclusive)
		if err := cmp.Or(CheckName(m.Name), checkMode(*m)); err != nil && len(locks) > 1 {
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
