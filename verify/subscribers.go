package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// promptWithin is how soon a subscriber must be told of an event that is known to be
	// committed, and a blocking read must return after a change, while nothing disturbs
	// the service.
	promptWithin = 2 * time.Second
	// promptThroughFaults is the same where disturbances come so often that the service
	// never has promptWithin between two of them: the time between them, added up.
	promptThroughFaults = 5 * time.Second
	// pollsInARow is the longest pause between two pages after which a poller still
	// counts as having read all the time.
	pollsInARow = 500 * time.Millisecond
	// violationsOfOne is after how many violations by one subscriber no more are looked for.
	violationsOfOne = 20
)

// An index is what the checks of subscribers look up.
type index struct {
	table  []*lock.Event // all events, in the order of their ids
	tales  map[string]*tale
	proven map[int64]time.Duration // when each event was known to be committed, at the latest
	calm   map[string]disturbances // of each replica
}

// newIndex prepares the checks of subscribers.
func (x *examination) newIndex() *index {
	n := &index{tales: map[string]*tale{}, proven: map[int64]time.Duration{}, calm: x.disturbed()}
	for i := range x.Events {
		n.table = append(n.table, &x.Events[i])
	}
	slices.SortStableFunc(n.table, func(a, b *lock.Event) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range x.Subscriptions {
		s.each(func(d Delivery, e *lock.Event) { n.prove(e.ID, d.At) })
	}
	for _, t := range x.tales {
		n.tales[t.name] = t
		n.hear(t)
	}
	return n
}

// prove notes that the event was known to be committed at that instant.
func (n *index) prove(id int64, at time.Duration) {
	if known, ok := n.proven[id]; !ok || at < known {
		n.proven[id] = at
	}
}

// hear notes which events of a lock its answers prove. What proves one event proves
// those of the lock that came before it.
func (n *index) hear(t *tale) {
	for _, l := range t.leases {
		if first := l.first(); first != nil && l.granted != nil {
			n.prove(l.granted.ID, first.Answered)
		}
		if l.of == nil || l.ended == nil || l.ended.Kind != lock.Released || len(l.of.leases) != 1 {
			continue
		}
		for _, c := range l.of.releases {
			if c.Outcome() == Done {
				n.prove(l.ended.ID, c.Answered)
			}
		}
	}
	for _, c := range t.calls {
		if seen, ok := c.Got.(lock.Lock); ok {
			i, found := t.event(seen.Revision)
			if found && t.events[i].At.Equal(seen.ChangedAt) { // else a new epoch has lost what was seen
				n.prove(t.events[i].ID, c.Answered)
			}
		}
	}
	at := forever
	for _, e := range slices.Backward(t.events) {
		if known, ok := n.proven[e.ID]; ok && known < at {
			at = known
		}
		if at < forever {
			n.proven[e.ID] = at
		}
	}
}

// find returns the place in the table of the first event whose id is not less.
func (n *index) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(n.table, id, func(e *lock.Event, id int64) int { return cmp.Compare(e.ID, id) })
}

// each calls do with every event that the subscriber was told.
func (s *Subscription) each(do func(Delivery, *lock.Event)) {
	for _, r := range s.Readings {
		for _, d := range r.Told {
			for _, e := range d.Events {
				do(d, e)
			}
		}
	}
}

// String names the subscriber in violations.
func (s *Subscription) String() string {
	return fmt.Sprintf("The %s with the number %d", s.Kind, s.Number)
}

// told checks that each subscriber was told just the events of the table that lie
// between its first cursor and its last, in the order of their ids, except for those
// that it was told are missing.
func (x *examination) told(c *Check) {
	for i := range x.Subscriptions {
		h := hearing{examination: x, of: &x.Subscriptions[i], check: c, cursor: fromNow}
		h.follow()
	}
}

// A hearing follows one subscriber through all that it was told.
type hearing struct {
	*examination
	of     *Subscription
	check  *Check
	cursor int64 // up to where it was told everything; fromNow before the first delivery
	last   int64 // the id of the newest event that it was told
	gap    bool  // whether it was told that events are missing, and no event since
	lost   *lock.Event
	lostAt time.Duration // when it was told of lost, an event that a new epoch has lost
	found  int           // violations
}

func (h *hearing) follow() {
	for _, r := range h.of.Readings {
		for _, d := range r.Told {
			if h.hear(r, d); h.found >= violationsOfOne {
				return
			}
		}
	}
}

// hear takes a delivery in.
func (h *hearing) hear(r Reading, d Delivery) {
	if d.Next < 0 {
		h.violated(nil, "was given a cursor that is no id of an event")
		return
	}
	if h.cursor < 0 {
		h.cursor = max(r.Asked, fromNow)
	}
	if h.cursor < 0 {
		h.cursor = d.Next
		if len(d.Events) > 0 {
			h.cursor = d.Events[0].ID - 1
		}
		h.last = h.cursor
	}
	before := h.cursor
	if d.Gap {
		h.skips(d)
	}
	h.misses(d)
	for _, e := range d.Events {
		h.check.Examined++
		h.event(d, e)
		h.last, h.gap = max(h.last, e.ID), false
	}
	if d.Next < h.cursor {
		h.violated(nil, fmt.Sprintf("was at %d and was given the cursor %d, which is before that", h.cursor, d.Next))
	}
	h.cursor, h.gap = d.Next, h.gap && d.Next <= before
}

// skips takes in that events are missing. Where that is since another history has taken
// the place of the one before, it may begin at an earlier id.
func (h *hearing) skips(d Delivery) {
	h.gap, h.lost = true, nil
	if !h.newEpochBetween(0, forever) {
		return
	}
	begin := d.Next
	if len(d.Events) > 0 {
		begin = min(begin, d.Events[0].ID-1)
	}
	h.cursor, h.last = min(h.cursor, begin), min(h.last, begin)
}

// event checks an event that was told.
func (h *hearing) event(d Delivery, e *lock.Event) {
	if e.ID <= h.last {
		h.violated(e, fmt.Sprintf("was told of event %d after event %d: twice, or out of order", e.ID, h.last))
	}
	if !strings.HasPrefix(e.Name, h.of.Prefix) {
		h.violated(e, fmt.Sprintf("was told of event %d of %s, and had asked for locks under %s", e.ID, e.Name, h.of.Prefix))
		return
	}
	i, found := h.index.find(e.ID)
	switch {
	case !found && h.mayBeLost(d.At):
		h.lost, h.lostAt = e, d.At
	case !found:
		h.violated(e, fmt.Sprintf("was told of event %d, %s, which is not in the table", e.ID, e.Kind))
	case !sameEvent(*h.index.table[i], *e):
		h.violated(h.index.table[i], fmt.Sprintf("was told of event %d as %s; in the table it is %s", e.ID, told(*e), told(*h.index.table[i])))
	case h.lost != nil && h.newEpochBetween(h.lostAt, d.At):
		h.violated(e, fmt.Sprintf("was told of event %d, which a new epoch has lost, and then of event %d, and of no gap between them", h.lost.ID, e.ID))
		h.lost = nil
	}
}

// mayBeLost reports whether a new epoch may have lost an event that was told at that
// instant.
func (h *hearing) mayBeLost(at time.Duration) bool {
	return h.newEpochBetween(at-epochSpan, forever)
}

// newEpochBetween reports whether a new epoch had begun, at the latest, between the two.
func (h *hearing) newEpochBetween(from, to time.Duration) bool {
	return slices.ContainsFunc(h.Faults, func(f Fault) bool { return f.Epoch && from <= f.Over && f.Over <= to })
}

// misses checks that no event of the table that the delivery has passed is missing in
// it. A gap excuses those before the first event that is told after it.
func (h *hearing) misses(d Delivery) {
	if h.gap && len(d.Events) == 0 {
		return
	}
	from, to := h.cursor, d.Next
	if h.gap {
		from = max(from, d.Events[0].ID-1)
	}
	var missing []*lock.Event
	i, _ := h.index.find(from + 1)
	events := d.Events
	for _, e := range h.index.table[min(i, len(h.index.table)):] {
		if e.ID > to {
			break
		}
		for len(events) > 0 && events[0].ID < e.ID {
			events = events[1:]
		}
		if strings.HasPrefix(e.Name, h.of.Prefix) && (len(events) == 0 || events[0].ID != e.ID) {
			missing = append(missing, e)
		}
	}
	if len(missing) == 0 {
		return
	}
	h.check.Missed += len(missing)
	h.violated(missing[0], fmt.Sprintf("was at %d and is told at %s to go on from %d: it was never told of event %d, and of %d more between these, and of no gap",
		h.cursor, after(d.At), d.Next, missing[0].ID, len(missing)-1))
}

// violated notes a violation by the subscriber. The event, which may be nil, is shown
// among those of its lock.
func (h *hearing) violated(e *lock.Event, what string) {
	h.found++
	h.check.blame(h.index, h.of, e, what)
}

// blame notes a violation by a subscriber.
func (c *Check) blame(n *index, s *Subscription, e *lock.Event, what string) {
	t := &tale{name: s.Prefix}
	if e != nil {
		t = &tale{name: e.Name}
		if known := n.tales[e.Name]; known != nil {
			t = known
		}
	}
	c.violated(t, fmt.Sprintf("%s %s.", s, what), nil, e)
}

// prompt checks that each subscriber was told of each event soon after it was known to
// be committed.
func (x *examination) prompt(c *Check) {
	for i := range x.Subscriptions {
		x.index.inTime(&x.Subscriptions[i], c)
	}
}

func (n *index) inTime(s *Subscription, c *Check) {
	first, last := s.span()
	if first < 0 {
		return
	}
	at := map[int64]time.Duration{}
	s.each(func(d Delivery, e *lock.Event) {
		if _, twice := at[e.ID]; !twice {
			at[e.ID] = d.At
		}
	})
	attended, found := s.attended(), 0
	from, _ := n.find(first + 1)
	for _, e := range n.table[min(from, len(n.table)):] {
		proven, known := n.proven[e.ID]
		told, heard := at[e.ID]
		if !known || !strings.HasPrefix(e.Name, s.Prefix) || !heard && e.ID <= last {
			continue
		}
		if !heard {
			told = forever
		}
		c.Examined++
		late := n.late(attended, proven, told)
		if late == 0 {
			continue
		}
		what := fmt.Sprintf("was told at %s of event %d, which was known to be committed at %s: %v of calm later", after(told), e.ID, after(proven), late)
		if !heard {
			what = fmt.Sprintf("was not told of event %d, which was known to be committed at %s, although it read for %v of calm after that", e.ID, after(proven), late)
		}
		c.blame(n, s, e, what)
		if found++; found == violationsOfOne {
			return
		}
	}
}

// late returns how much too late the subscriber was told, zero if it was in time.
func (n *index) late(attended []attendance, proven, told time.Duration) time.Duration {
	if told-proven <= promptWithin {
		return 0
	}
	i, _ := slices.BinarySearchFunc(attended, proven, func(a attendance, at time.Duration) int { return cmp.Compare(a.to, at) })
	for _, a := range attended[min(i, len(attended)):] {
		if a.from >= told {
			break
		}
		if late := n.overdue(a.via, max(a.from, proven), min(a.to, told)); late > 0 {
			return late
		}
	}
	return 0
}

// overdue returns how long the service had in calm between the two, if that is more
// than it may need; else zero.
func (n *index) overdue(via string, from, to time.Duration) time.Duration {
	d, known := n.calm[via]
	if !known || to-from <= promptWithin {
		return 0
	}
	longest, total := d.calm(from, to)
	if longest > promptWithin || total > promptThroughFaults {
		return total
	}
	return 0
}

// span returns the first cursor and the last, which are negative if there was none.
func (s *Subscription) span() (first, last int64) {
	first, last = fromNow, fromNow
	for _, r := range s.Readings {
		for _, d := range r.Told {
			if first < 0 {
				if first = r.Asked; first < 0 {
					first = d.Next
				}
			}
			last = d.Next
		}
	}
	return first, last
}

// An attendance is a time in which a subscriber read from a replica without a break.
type attendance struct {
	via string
	stretch
}

// attended returns when the subscriber read.
func (s *Subscription) attended() []attendance {
	var all []attendance
	for _, r := range s.Readings {
		if r.Opened == 0 || s.Kind == Polling && r.Failed {
			continue
		}
		if n := len(all); s.Kind == Polling && n > 0 && all[n-1].via == r.Via && r.Sent-all[n-1].to <= pollsInARow {
			all[n-1].to = r.Over
			continue
		}
		all = append(all, attendance{r.Via, stretch{r.Opened, r.Over}})
	}
	return all
}
