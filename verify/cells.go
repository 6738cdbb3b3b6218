package verify

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

// idsOfCommit and tokensOfCommit are how many ids of events, and how many tokens, a commit has. The numbers of commits of a
// cell are its position modulo placement.Step.
const idsOfCommit, tokensOfCommit = 4096, int64(lock.MaxTokens)

// cellOfEvent returns the position of the cell that wrote the event, in a service of several cells.
func cellOfEvent(id int64) int { return int(id / idsOfCommit % placement.Step) }

// cellOfToken returns the position of the cell that granted the token, in a service of several cells.
func cellOfToken(t lock.Token) int { return int(int64(t) / tokensOfCommit % placement.Step) }

// cursorsOf returns the cursors in the cells, by their positions, that a cursor of several cells consists of: such as
// 00-4711.02-815. It is nil for any other cursor. A cell in which the list has not begun, or has ended, has none.
func cursorsOf(cursor string) map[int]int64 {
	if cursor == "" || cursor == paddock.CursorNow || !strings.Contains(cursor, "-") {
		return nil
	}
	all := map[int]int64{}
	for part := range strings.SplitSeq(cursor, ".") {
		position, id, _ := strings.Cut(part, "-")
		n, err := strconv.Atoi(position)
		if err != nil {
			return nil
		}
		if at, err := strconv.ParseInt(id, 10, 64); err == nil {
			all[n] = at
		}
	}
	return all
}

// byCell returns the subscriptions, each as one for each cell if the service has several: a cell has events and cursors of its
// own. A gap is one in all of them.
func (h History) byCell() []Subscription {
	var all []Subscription
	for _, s := range h.Subscriptions {
		positions := s.positions()
		if len(positions) == 0 {
			all = append(all, s)
		}
		for _, position := range positions {
			all = append(all, s.in(position))
		}
	}
	return all
}

// positions returns the positions of the cells of which the subscriber has received cursors, none if there is one cell.
func (s *Subscription) positions() []int {
	known := map[int]bool{}
	for _, r := range s.Requests {
		for _, d := range r.Deliveries {
			for position := range d.NextIn {
				known[position] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// in returns what the subscriber requested and received of the cell.
func (s *Subscription) in(position int) Subscription {
	only := *s
	only.cell, only.Requests = &position, slices.Clone(s.Requests)
	for i := range only.Requests {
		r := &only.Requests[i]
		if r.CursorIn != nil {
			r.Cursor = cursorNow
			if at, known := r.CursorIn[position]; known {
				r.Cursor = at
			}
		}
		r.Deliveries = nil
		for _, d := range s.Requests[i].Deliveries {
			if at, known := d.NextIn[position]; known {
				d.Next, d.Events = at, slices.DeleteFunc(slices.Clone(d.Events), func(e *lock.Event) bool { return cellOfEvent(e.ID) != position })
				r.Deliveries = append(r.Deliveries, d)
			}
		}
	}
	return only
}

// selects reports whether the event is one that the subscriber requested.
func (s *Subscription) selects(e *lock.Event) bool {
	return strings.HasPrefix(e.Name, s.Prefix) && (s.cell == nil || cellOfEvent(e.ID) == *s.cell)
}

// checkCells checks the history of a service of several cells. A group is in one cell at a time, so the history of a group
// is that of a service with one database, in which each move is an epoch. What holds in a cell, or everywhere, is checked
// for all groups together.
func (h History) checkCells(o CheckOptions) Report {
	r := h.examine(o, func(c checker) bool { return c.name == checkTokenOrder || c.name == checkUniqueness })
	for _, group := range h.groups() {
		one := group.examine(o, func(c checker) bool { return c.name != checkUniqueness })
		r.visualization = cmp.Or(r.visualization, one.visualization)
		r.add(one.Checks)
	}
	return r
}

// add adds the results of the checks of a part of the history.
func (r *Report) add(checks []Check) {
	for _, c := range checks {
		i := slices.IndexFunc(r.Checks, func(known Check) bool { return known.Name == c.Name })
		if i < 0 {
			r.Checks = append(r.Checks, c)
			continue
		}
		known := &r.Checks[i]
		known.Examined, known.Missed, known.Skipped = known.Examined+c.Examined, known.Missed+c.Missed, c.Skipped
		known.Violations = append(known.Violations, c.Violations...)
	}
}

// groups returns the history of each group. The calls about a session belong to all groups that have used it.
func (h History) groups() (all []History) {
	byName, users := map[string]*History{}, map[lock.SessionRef]map[string]bool{}
	of := func(name string) *History {
		group := placement.Group(name)
		if byName[group] == nil {
			byName[group] = &History{Faults: h.Faults, Start: h.Start, inCells: true}
			if h.Events != nil {
				byName[group].Events = []lock.Event{}
			}
		}
		return byName[group]
	}
	for _, c := range h.Calls {
		if a, acquires := c.Request.(lock.Acquire); acquires && a.SessionID.Ref() != 0 {
			ref := a.SessionID.Ref()
			if users[ref] == nil {
				users[ref] = map[string]bool{}
			}
			users[ref][placement.Group(c.Name)] = true
		}
	}
	for _, c := range h.Calls {
		if ref := c.session(); ref == 0 {
			one := of(c.Name)
			one.Calls = append(one.Calls, c)
		} else {
			for group := range users[ref] {
				one := of(group)
				one.Calls = append(one.Calls, c)
			}
		}
	}
	for _, e := range h.Events {
		one := of(e.Name)
		one.Events = append(one.Events, e)
	}
	for _, s := range h.Subscriptions {
		one := of(s.Prefix)
		one.Subscriptions = append(one.Subscriptions, s)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, *byName[name])
	}
	return all
}
