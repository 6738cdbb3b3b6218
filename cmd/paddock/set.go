package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// parseLocks returns the locks of arguments such as jobs:nightly, rates,shared or gpus,capacity=8,permits=2. Those without
// a mode have none yet. It does not check the names.
func parseLocks(args []string) ([]lock.Member, error) {
	locks := make([]lock.Member, len(args))
	for i, arg := range args {
		name, mode, given := strings.Cut(arg, ",")
		locks[i].Name = name
		switch {
		case !given:
		case mode == "exclusive", mode == "shared":
			locks[i].Mode = lock.ModeOf(mode)
		case !parsePermits(mode, &locks[i]):
			return nil, usagef("%s: the mode after the comma is invalid; use exclusive, shared, capacity=N for one of N permits, "+
				"or capacity=N,permits=M for M of them", printable.Text(arg))
		}
	}
	return locks, nil
}

// parsePermits sets what a text such as capacity=8,permits=2 says, and reports whether it is valid.
func parsePermits(text string, m *lock.Member) bool {
	m.Mode = lock.Permit
	for part := range strings.SplitSeq(text, ",") {
		what, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return false
		}
		switch {
		case what == "capacity" && m.Capacity == 0:
			m.Capacity = n
		case what == "permits" && m.Permits == 0:
			m.Permits = n
		default:
			return false
		}
	}
	return true
}

// namesOf returns the names of the locks.
func namesOf(locks []lock.Member) []string {
	names := make([]string, len(locks))
	for i, l := range locks {
		names[i] = l.Name
	}
	return names
}

// joined returns the names in order, with commas between them, as an Observer gets them.
func joined(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }

// memberField matches the field of an error about one lock of several.
var memberField = regexp.MustCompile(`^(?:locks|names)/(\d+)(?:/(\w+))?$`)

// explainLocks does what explain does. An error about one of several locks names that lock, not its position, and one
// that says that they were not acquired names them all.
func explainLocks(names []string, err error) error {
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != lock.ErrInvalid {
		return nameLocks(names, explain(err))
	}
	found := memberField.FindStringSubmatch(e.Field)
	if found == nil {
		return explain(err)
	}
	i, parseErr := strconv.Atoi(found[1])
	if parseErr != nil || i >= len(names) {
		return explain(err)
	}
	what := found[2]
	if what == "" {
		what = "name"
	}
	which := "NAME"
	if len(names) > 1 {
		which += " " + printable.Text(strconv.Quote(names[i]))
	}
	return usagef("%s: %s%s", which, what, strings.TrimPrefix(e.Detail, e.Field))
}

// nameLocks adds the names of the locks to an error that says that they were not acquired.
func nameLocks(names []string, err error) error {
	if exitCode(err) != exitNotAcquired {
		return err
	}
	return &failure{exitNotAcquired, fmt.Errorf("%s %s%s", printable.Text(strings.Join(slices.Sorted(slices.Values(names)), ", ")),
		notAcquired, strings.TrimPrefix(err.Error(), notAcquired))}
}

// leaseVariables returns the variables about the locks of a lease, in the order of names. The first three are of the
// first.
func leaseVariables(locks []guard.Member) []variable {
	slotOf := func(l guard.Member) string {
		if l.Slot == 0 {
			return ""
		}
		return strconv.Itoa(l.Slot)
	}
	list := func(of func(guard.Member) string) string {
		var items []string
		for _, l := range locks {
			if item := of(l); item != "" {
				items = append(items, item)
			}
		}
		return strings.Join(items, " ")
	}
	return []variable{
		{"PADDOCK_LOCK", locks[0].Name},
		{"PADDOCK_FENCING_TOKEN", token(locks[0].Token)},
		{"PADDOCK_SLOT", slotOf(locks[0])},
		{"PADDOCK_LOCKS", list(func(l guard.Member) string { return l.Name })},
		{"PADDOCK_FENCING_TOKENS", list(func(l guard.Member) string { return fmt.Sprintf("%s=%d", l.Name, l.Token) })},
		{"PADDOCK_SLOTS", list(func(l guard.Member) string {
			if l.Slot == 0 {
				return ""
			}
			return l.Name + "=" + cmp.Or(strings.ReplaceAll(string(l.Slots), " ", ","), slotOf(l))
		})},
	}
}

// together returns the locks of a set that are not the lock name.
func together(name string, set []string) string {
	others := slices.DeleteFunc(slices.Clone(set), func(n string) bool { return n == name })
	if len(others) == 0 {
		return none
	}
	return strings.Join(others, ", ")
}

// rowsWithSets adds rows, of which the first is the header. If any of them is of a set, there is a column with its
// other locks; sets has them for all rows but the header.
func (t *table) rowsWithSets(rows [][]string, sets []string) {
	withColumn(rows, "TOGETHER WITH", sets)
	t.head(rows[0]...)
	for _, row := range rows[1:] {
		t.row(row...)
	}
}

// withColumn adds a column to rows, of which the first is the header, unless all of its cells are none.
func withColumn(rows [][]string, header string, cells []string) {
	if !slices.ContainsFunc(cells, func(cell string) bool { return cell != none }) {
		return
	}
	for i, cell := range append([]string{header}, cells...) {
		rows[i] = append(rows[i], cell)
	}
}

// showLeaseSet returns the output for the lease of several locks, for its holder.
func showLeaseSet(g lock.Grant) output {
	members := namesIn(guard.MembersOf(g), func(m guard.Member) string { return m.Name })
	return output{wire: wire.LeaseSetOf(g), names: members, env: variablesFrom(g), table: func(s *table) {
		s.field("LEASE ID", uuid.UUID(g.ID).String())
		s.field("HOLDER", g.Holder)
		s.field("EXPIRES", expiry(g))
		if g.Metadata != nil {
			s.field("METADATA", string(g.Metadata))
		}
		s.head("LOCK", "TOKEN", "MODE")
		for _, m := range guard.MembersOf(g) {
			s.row(m.Name, token(m.Token), modeAndSlot(m.Mode, m.Slot, m.Slots))
		}
	}}
}

// members returns the locks of the arguments, with the mode of the flags where an argument has none.
func (f leaseFlags) members(args []string) ([]lock.Member, error) {
	if f.Permits != nil && *f.Permits < 1 {
		return nil, usagef("--permits is %d; give 1 or more", *f.Permits)
	}
	if f.Capacity != nil && *f.Capacity < 1 {
		return nil, usagef("--capacity is %d; give 1 or more, or --permits alone if a rule has the capacity", *f.Capacity)
	}
	members, err := parseLocks(args)
	for i := range members {
		switch m := &members[i]; {
		case m.Mode != 0:
		case f.Shared:
			m.Mode = lock.Shared
		case f.Capacity != nil || f.Permits != nil:
			m.Mode, m.Capacity, m.Permits = lock.Permit, wire.ValueOf(f.Capacity), wire.ValueOf(f.Permits)
		}
	}
	return members, err
}
