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
	// promptWithin is how soon an event that is known to be committed must reach a subscriber, and a
	// blocking read must return after a change, while the service is undisturbed.
	promptWithin = 2 * time.Second
	// promptInTotal bounds the sum of undisturbed times where disturbances leave no interval of promptWithin.
	promptInTotal = 5 * time.Second
	// maxPollPause is the longest pause between two pages after which a poller still counts as reading.
	maxPollPause = 500 * time.Millisecond
	// maxViolations is how many violations of one subscriber are reported.
	maxViolations = 20
)

// An index holds the lookup tables for the checks of subscribers.
type index struct {
	table     []*lock.Event // all events, ordered by id
	locks     map[string]*lockHistory
	proven    map[int64]time.Duration // latest time at which each event was committed, by id
	disturbed map[string]disturbances // by replica
}

// newIndex prepares the checks of subscribers.
func (x *examination) newIndex() *index {
	n := &index{locks: map[string]*lockHistory{}, proven: map[int64]time.Duration{}, disturbed: x.disturbed()}
	for i := range x.Events {
		n.table = append(n.table, &x.Events[i])
	}
	slices.SortStableFunc(n.table, func(a, b *lock.Event) int { return cmp.Compare(a.ID, b.ID) })
	for i := range x.subscriptions {
		x.subscriptions[i].each(func(d Delivery, e *lock.Event) { n.addProof(e.ID, d.At) })
	}
	for _, t := range x.locks {
		n.locks[t.name] = t
		n.addAnswers(t)
	}
	return n
}

// addProof records that the event was known to be committed at that time.
func (n *index) addProof(id int64, at time.Duration) {
	if known, ok := n.proven[id]; !ok || at < known {
		n.proven[id] = at
	}
}

// addAnswers records which events of a lock its answers prove. Proof of an event is proof of all
// earlier events of the lock.
func (n *index) addAnswers(t *lockHistory) {
	for _, l := range t.leases {
		if first := l.firstAnswer(); first != nil && l.granted != nil {
			n.addProof(l.granted.ID, first.Answered)
		}
		if l.group == nil || l.ended == nil || l.ended.Kind != lock.Released || len(l.group.leases) != 1 {
			continue
		}
		for _, c := range l.group.releaseCalls() {
			if c.Outcome() == Done {
				n.addProof(l.ended.ID, c.Answered)
			}
		}
	}
	for _, c := range t.calls {
		if seen, ok := c.Response.(lock.Lock); ok {
			i, found := t.event(seen.Revision)
			if found && t.events[i].At.Equal(seen.ChangedAt) { // otherwise a new epoch has lost it
				n.addProof(t.events[i].ID, c.Answered)
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

// find returns the index in the table of the first event with that id or a greater one.
func (n *index) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(n.table, id, func(e *lock.Event, id int64) int { return cmp.Compare(e.ID, id) })
}

// each calls do with every event that the subscriber received.
func (s *Subscription) each(do func(Delivery, *lock.Event)) {
	for _, r := range s.Requests {
		for _, d := range r.Deliveries {
			for _, e := range d.Events {
				do(d, e)
			}
		}
	}
}

// String names the subscriber in violations.
func (s *Subscription) String() string {
	return fmt.Sprintf("Subscriber %d (%s)", s.Number, s.Kind)
}

// deliveries checks that each subscriber received exactly the events of the table between its first
// and its last cursor, ordered by id, except for those excused by a gap.
func (x *examination) deliveries(c *Check) {
	for i := range x.subscriptions {
		h := deliveryChecker{examination: x, subscription: &x.subscriptions[i], report: c, cursor: cursorNow}
		h.checkAll()
	}
}

// A deliveryChecker follows one subscriber through everything that it received.
type deliveryChecker struct {
	*examination
	subscription *Subscription
	report       *Check
	cursor       int64       // everything up to this id was delivered; cursorNow before the first delivery
	last         int64       // id of the newest event received
	gap          bool        // a gap was received, and no event since
	lost         *lock.Event // was received, and a new epoch has lost it
	violations   int         // number found
}

func (h *deliveryChecker) checkAll() {
	for _, r := range h.subscription.Requests {
		for _, d := range r.Deliveries {
			if h.check(r, d); h.violations >= maxViolations {
				return
			}
		}
	}
}

// check processes one delivery.
func (h *deliveryChecker) check(r EventRequest, d Delivery) {
	if d.Next < 0 {
		h.violated(nil, "received a cursor that is not an event id")
		return
	}
	if h.cursor < 0 {
		h.cursor = max(r.Cursor, cursorNow)
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
		h.gap, h.lost = true, nil
	}
	h.checkMissing(d)
	for _, e := range d.Events {
		h.report.Examined++
		h.checkEvent(d, e)
		h.last, h.gap = max(h.last, e.ID), false
	}
	if d.Next < h.cursor {
		h.violated(nil, fmt.Sprintf("was at cursor %d and received the earlier cursor %d", h.cursor, d.Next))
	}
	h.cursor, h.gap = d.Next, h.gap && d.Next <= before
}

// checkEvent checks one received event.
func (h *deliveryChecker) checkEvent(d Delivery, e *lock.Event) {
	if e.ID <= h.last {
		h.violated(e, fmt.Sprintf("received event %d after event %d: twice, or out of order", e.ID, h.last))
	}
	if !strings.HasPrefix(e.Name, h.subscription.Prefix) {
		h.violated(e,
			fmt.Sprintf("received event %d of %s, but requested locks under %s", e.ID, e.Name, h.subscription.Prefix))
		return
	}
	i, found := h.index.find(e.ID)
	switch {
	case !found && h.mayBeLost(e, d.At):
		h.lost = e
	case !found:
		h.violated(e, fmt.Sprintf("received event %d (%s), which is not in the table", e.ID, e.Kind))
	case !sameEvent(*h.index.table[i], *e):
		h.violated(h.index.table[i], fmt.Sprintf("received event %d as %s, but in the table it is %s", e.ID,
			eventText(*e), eventText(*h.index.table[i])))
	case h.lost != nil && h.epochs.of(h.lost) < h.epochs.of(e):
		h.violated(e,
			fmt.Sprintf("received event %d, which a new epoch has lost, and then event %d without a gap between them",
				h.lost.ID, e.ID))
		h.lost = nil
	}
}

// mayBeLost reports whether the epoch after that of the event may have lost it: the event was received before.
func (h *deliveryChecker) mayBeLost(e *lock.Event, at time.Duration) bool {
	k := h.epochs.of(e) + 1
	return k < len(h.epochs) && at < h.epochs[k].before
}

// checkMissing checks that the delivery contains every event of the table that its cursor passes. A
// gap excuses the events before the first one that is delivered after it.
func (h *deliveryChecker) checkMissing(d Delivery) {
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
		if h.subscription.selects(e) && (len(events) == 0 || events[0].ID != e.ID) {
			missing = append(missing, e)
		}
	}
	if len(missing) == 0 {
		return
	}
	h.report.Missed += len(missing)
	h.violated(missing[0],
		fmt.Sprintf("moved from cursor %d to %d at %s without event %d and %d more between them, and without a gap",
			h.cursor, d.Next, sinceStart(d.At), missing[0].ID, len(missing)-1))
}

// violated records a violation by the subscriber. The event, which may be nil, is shown among those
// of its lock.
func (h *deliveryChecker) violated(e *lock.Event, what string) {
	h.violations++
	h.report.subscriberViolated(h.index, h.subscription, e, what)
}

// subscriberViolated records a violation by a subscriber.
func (c *Check) subscriberViolated(n *index, s *Subscription, e *lock.Event, what string) {
	t := &lockHistory{name: s.Prefix}
	if e != nil {
		t = &lockHistory{name: e.Name}
		if known := n.locks[e.Name]; known != nil {
			t = known
		}
	}
	c.violated(t, fmt.Sprintf("%s %s.", s, what), nil, e)
}
