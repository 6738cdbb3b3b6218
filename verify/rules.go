package verify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// Rules are what the events of one lock must satisfy on their own.
//
//   - Revisions have no gaps, ids grow, and timestamps do not go backwards, except when an epoch begins.
//   - Conflicting leases do not overlap, and no two leases have the same slot. A lease has a slot for each of its permits.
//   - A grant that conflicts with an earlier one has a greater token; readers of one shared
//     phase have the same token.
//   - Waiters are granted the lock in the order of their places, no request overtakes one, and
//     none waits once the lock can be granted to it, unless it waits for a set.
//   - A queued waiter is granted or dequeued, once. A waiter whose grant was withdrawn returns to
//     its place if the event has one, and is then granted or dequeued again.
//   - A lease that ends was held. One that was suspect does not expire.
//   - A lock that a release has closed is not granted before it opens.
//
// Events do not carry the grace of a lease. A revoked lease may block others for up to
// lock.MaxGrace, unless an operator skips the grace with a second revocation.
type Rules struct {
	// Capacity is the number of permits; zero if unknown. Then permits are only known to have
	// distinct slots and tokens.
	Capacity int
	// Permits returns how many permits the request of a Queued, a Granted or a Withdrawn event asks for, in mode Permit;
	// zero if that is unknown. Nil: one.
	Permits func(lock.Event) int
	// AllowOvertaking accepts that waiters are skipped, as those of a replica that died are. The order of
	// waiters is then not checked.
	AllowOvertaking bool
	// Away reports whether the waiter of a Queued event may have been disconnected for a while: it may be skipped, and
	// keeps its place. Nil: none was. A waiter whose grant was withdrawn may be skipped in any case, since no event says
	// when its client is back.
	Away func(lock.Event) bool
	// AllowWaiters accepts that calls still wait at the end.
	AllowWaiters bool
	// InSet reports whether the waiter of a Queued or Withdrawn event waits for a set: it may have to wait while this
	// lock is available, and the waiters behind it wait, too. Nil: none does.
	InSet func(lock.Event) bool
	// InTree: the lock is in a tree, so some of its revisions are of locks below it and have no event.
	InTree bool
	// Frozen reports whether a freeze of other locks, too, may keep the lock from being granted at that time. Nil: none
	// does.
	Frozen func(time.Time) bool
	// Cells: the service has several cells, so an epoch begins, too, when the lock moves to another one.
	Cells bool
}

// Check returns an error that describes the first violation and the events that led to it. The
// events must be all those of one lock, in order and from the first.
func (r Rules) Check(events []lock.Event) error {
	i, err := r.first(events)
	if err == nil || i == len(events) {
		return err
	}
	return fmt.Errorf("%w; previous events:%s", err, eventLines(events[max(0, i-12):i]))
}

// first returns the index of the first event that violates the rules, and how; the index is
// len(events) if the end of the events does.
func (r Rules) first(events []lock.Event) (int, error) {
	h := eventChecker{rules: r, held: map[int]lock.Event{}, stays: map[int64]bool{}, graces: map[int]lock.Event{}}
	for i, e := range events {
		if err := cmp.Or(h.checkOrder(e), h.step(e)); err != nil {
			return i, fmt.Errorf("%s: %w", eventText(e), err)
		}
		h.record(e)
	}
	if len(h.waiting) > 0 && !r.AllowWaiters {
		return len(events), fmt.Errorf("%d requests still wait at the end, the first since %s", len(h.waiting),
			eventText(h.waiting[0]))
	}
	return 0, nil
}

func eventText(e lock.Event) string {
	return fmt.Sprintf("revision %d, %v %v in %s by %q with token %d and place %d",
		e.Revision, e.Kind, e.Mode, e.Slots.Text(e.Slot), e.Holder, e.Token, e.Place)
}

func eventLines(events []lock.Event) string {
	text := ""
	for _, e := range events {
		text += "\n\t" + eventText(e)
	}
	return text
}

// An eventChecker is the state of a lock after some of its events.
type eventChecker struct {
	rules    Rules
	last     lock.Event
	newest   lock.Token
	held     map[int]lock.Event // grants that have not ended, by their first slot
	stays    map[int64]bool     // those that were suspect, by their revision
	graces   map[int]lock.Event // revocations of leases whose grace may not be over, likewise
	waiting  []lock.Event       // waiters, ordered by place: the Queued or Withdrawn events that put them there
	grantDue *lock.Event        // event since which a waiter is due
	// closedUntil is when the lock opens that a release has closed, and frozenUntil when a freeze of this lock ends.
	closedUntil, frozenUntil time.Time
}

func (h *eventChecker) checkOrder(e lock.Event) error {
	switch last := h.last; {
	case e.Revision != last.Revision+1 && (!h.rules.InTree || e.Revision <= last.Revision):
		return fmt.Errorf("the revision does not follow %d", last.Revision)
	case last.Revision > 0 && e.Name != last.Name:
		return fmt.Errorf("the lock is %q, but was %q before", e.Name, last.Name)
	case e.ID != 0 && e.ID <= last.ID:
		return fmt.Errorf("the id %d is not greater than %d", e.ID, last.ID)
	case e.At.Before(last.At) && !jumps(last, e, h.rules.Cells):
		return fmt.Errorf("its time %v is before %v", e.At, last.At)
	case h.grantDue != nil && e.At.After(h.grantDue.At):
		return fmt.Errorf("%q still waits although the lock was available since revision %d", h.due().Holder,
			h.grantDue.Revision)
	}
	return nil
}

func (h *eventChecker) step(e lock.Event) error {
	switch e.Kind {
	case lock.Granted:
		return cmp.Or(h.checkFits(e), h.checkToken(e), h.checkTurn(e), h.grant(e))
	case lock.Released, lock.Expired, lock.Revoked, lock.Withdrawn:
		return h.end(e)
	case lock.MetadataUpdated:
		_, err := h.leaseOf(e)
		return err
	case lock.Suspected:
		held, err := h.leaseOf(e)
		h.stays[held.Revision] = true
		return err
	case lock.Refused:
		return h.checkRefused(e)
	case lock.Opened:
		h.closedUntil = time.Time{}
		return nil
	case lock.Frozen:
		if h.frozenUntil = e.Until; e.Until.IsZero() {
			h.frozenUntil = endless
		}
		return nil
	case lock.Thawed:
		h.frozenUntil = time.Time{}
		return nil
	case lock.Queued:
		if e.Place != e.Revision || e.Token != 0 {
			return errors.New("a new waiter's place is its revision, and it has no token")
		}
		h.enqueue(e)
		return nil
	case lock.Dequeued:
		if e.Token != 0 {
			return errors.New("a dequeued waiter has no token")
		}
		_, err := h.dequeue(e)
		return err
	}
	return errors.New("unknown kind of event")
}

// checkRefused returns an error if the refused token is that of a lease that has not ended, or of no lease at all. In a
// tree the newest token and the holder may be those of a lease below.
func (h *eventChecker) checkRefused(e lock.Event) error {
	if h.rules.InTree && e.Newest >= h.newest && e.Token <= e.Newest {
		return nil
	}
	if e.Newest != h.newest || e.Token < 1 || e.Token > h.newest {
		return fmt.Errorf("the newest token is %d, the event says %d", h.newest, e.Newest)
	}
	held := func(g lock.Event) bool { return g.Holder == e.HeldBy }
	if n := len(h.held); (n == 0) != (e.HeldBy == "") || n > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(h.held)), held) {
		return fmt.Errorf("%q did not hold the lock", e.HeldBy)
	}
	if g, ok := h.held[e.Slot]; ok && g.Token == e.Token && g.Mode == e.Mode {
		return fmt.Errorf("its lease has not ended: %s", eventText(g))
	}
	return nil
}

// checkFits returns an error if the granted lease is not compatible with the held ones.
func (h *eventChecker) checkFits(e lock.Event) error {
	switch {
	case e.At.Before(h.closedUntil):
		return fmt.Errorf("the lock is closed until %v", h.closedUntil)
	case (e.Mode == lock.Exclusive) != (e.Slot == 0) || e.Slot < 0:
		return errors.New("slot 0 is for exclusive leases only, and they have no other")
	case !e.Slots.IsValid(e.Slot) || e.Slots != "" && e.Mode != lock.Permit:
		return fmt.Errorf("a %v lease cannot have the slots %q", e.Mode, e.Slots)
	case h.rules.Capacity > 0 && e.Mode == lock.Permit && slices.Max(e.Slots.All(e.Slot)) > h.rules.Capacity:
		return fmt.Errorf("the slot is beyond the capacity %d", h.rules.Capacity)
	}
	if asked := h.permits(e); asked > 0 && e.Mode == lock.Permit && e.Slots.Count() != asked {
		return fmt.Errorf("it has %d permits, and %d were asked for", e.Slots.Count(), asked)
	}
	for _, other := range h.held {
		switch {
		case e.Mode != other.Mode || e.Mode == lock.Exclusive:
			return fmt.Errorf("it conflicts with a lease that has not ended: %s", eventText(other))
		case overlap(e, other):
			return fmt.Errorf("the slot is taken: %s", eventText(other))
		}
	}
	if out := permitsOf(h.held); e.Mode == lock.Permit && h.rules.Capacity > 0 && out+e.Slots.Count() > h.rules.Capacity {
		return fmt.Errorf("%d of %d permits are already granted", out, h.rules.Capacity)
	}
	return nil
}

// permits returns how many permits the request of the event asks for, zero if that is unknown.
func (h *eventChecker) permits(e lock.Event) int {
	if h.rules.Permits == nil {
		return 1
	}
	return h.rules.Permits(e)
}

// permitsOf returns how many permits the leases have.
func permitsOf(leases map[int]lock.Event) (n int) {
	for _, l := range leases {
		n += l.Slots.Count()
	}
	return n
}

// overlap reports whether two leases have a slot in common.
func overlap(a, b lock.Event) bool {
	return slices.ContainsFunc(a.Slots.All(a.Slot), func(slot int) bool { return b.Slots.Include(b.Slot, slot) })
}

func (h *eventChecker) checkToken(e lock.Event) error {
	if e.Mode == lock.Shared {
		for _, other := range h.held {
			if e.Token != other.Token {
				return fmt.Errorf("the other readers have token %d", other.Token)
			}
			return nil
		}
	}
	if e.Token <= h.newest {
		return fmt.Errorf("the token is not greater than %d", h.newest)
	}
	return nil
}

// checkTurn returns an error unless the granted request was next in the queue.
func (h *eventChecker) checkTurn(e lock.Event) error {
	if e.Place != 0 {
		w, err := h.dequeue(e)
		if err != nil {
			return err
		}
		if w.Mode != e.Mode || w.Holder != e.Holder {
			return fmt.Errorf("another waiter had that place: %s", eventText(w))
		}
	}
	if h.rules.AllowOvertaking {
		return nil
	}
	first := slices.IndexFunc(h.waiting, func(w lock.Event) bool { return !h.mayBeAway(w) })
	if first < 0 || e.Place != 0 && e.Place < h.waiting[first].Place {
		return nil
	}
	return fmt.Errorf("it overtakes %s", eventText(h.waiting[first]))
}

func (h *eventChecker) grant(e lock.Event) error {
	maps.DeleteFunc(h.graces, func(_ int, g lock.Event) bool { return overlap(g, e) || conflict(g.Mode, e.Mode) })
	h.held[e.Slot], h.newest = e, e.Token
	return nil
}

func (h *eventChecker) end(e lock.Event) error {
	if g, ok := h.graces[e.Slot]; ok && e.Kind == lock.Revoked && g.Token == e.Token && g.Holder == e.Holder {
		delete(h.graces, e.Slot) // this skips the rest of the grace
		return nil
	}
	held, err := h.leaseOf(e)
	if err != nil {
		return err
	}
	if e.Kind == lock.Expired && h.stays[held.Revision] {
		return errors.New("the lease was suspect, so it ends only by a release or a revocation")
	}
	delete(h.held, e.Slot)
	if e.Kind == lock.Released {
		h.closedUntil = e.Until
	}
	switch {
	case e.Kind == lock.Revoked:
		h.graces[e.Slot] = e
	case e.Kind != lock.Withdrawn || e.Place == 0: // no waiter returns
	case e.Place != held.Place:
		return fmt.Errorf("the waiter had the place %d", held.Place)
	default:
		h.enqueue(e)
	}
	return nil
}

// leaseOf returns the grant of the lease that e is about.
func (h *eventChecker) leaseOf(e lock.Event) (lock.Event, error) {
	held, ok := h.held[e.Slot]
	if !ok || held.Token != e.Token || held.Mode != e.Mode || held.Holder != e.Holder || held.Slots != e.Slots {
		return held, errors.New("no such lease is held")
	}
	return held, nil
}

// enqueue adds the waiter of e at its place.
func (h *eventChecker) enqueue(e lock.Event) {
	byPlace := func(w lock.Event, place int64) int { return cmp.Compare(w.Place, place) }
	i, _ := slices.BinarySearchFunc(h.waiting, e.Place, byPlace)
	h.waiting = slices.Insert(h.waiting, i, e)
}

// dequeue removes the waiter at the place of e and returns the event that put it there.
func (h *eventChecker) dequeue(e lock.Event) (lock.Event, error) {
	i := slices.IndexFunc(h.waiting, func(w lock.Event) bool { return w.Place == e.Place })
	if i < 0 {
		return lock.Event{}, errors.New("no waiter has that place")
	}
	w := h.waiting[i]
	h.waiting = slices.Delete(h.waiting, i, i+1)
	return w, nil
}

// record updates the state after e. If a waiter is due now, it must be granted the lock at the same time.
func (h *eventChecker) record(e lock.Event) {
	if h.last.ID > 0 && jumps(h.last, e, h.rules.Cells) { // an epoch begins: graces begin again
		for slot, g := range h.graces {
			g.At = e.At
			h.graces[slot] = g
		}
	}
	h.last = e
	maps.DeleteFunc(h.graces, func(_ int, g lock.Event) bool { return e.At.Sub(g.At) > lock.MaxGrace })
	switch {
	case h.rules.AllowOvertaking || h.isClosed(e.At) || h.due() == nil:
		h.grantDue = nil
	case h.grantDue == nil:
		h.grantDue = &e
	}
}

// endless is the end of a freeze that has none.
var endless = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// isClosed reports whether nothing is granted at that time.
func (h *eventChecker) isClosed(at time.Time) bool {
	return at.Before(h.closedUntil) || at.Before(h.frozenUntil) || h.rules.Frozen != nil && h.rules.Frozen(at)
}

// due returns the waiter that must be granted the lock now, or nil. A waiter that may be away can be back without an
// event. It then blocks those behind it if it does not fit or waits for a set, and is granted the lock otherwise. So it
// is passed over here only if it fits and waits for no set.
func (h *eventChecker) due() *lock.Event {
	for i := range h.waiting {
		switch w := &h.waiting[i]; {
		case h.inSet(*w) || !h.fits(*w):
			return nil
		case !h.mayBeAway(*w):
			return w
		}
	}
	return nil
}

// inSet reports whether the waiter waits for a set.
func (h *eventChecker) inSet(w lock.Event) bool {
	return h.rules.InTree || h.rules.InSet != nil && h.rules.InSet(w)
}

// mayBeAway reports whether the waiter may have been disconnected for a while.
func (h *eventChecker) mayBeAway(w lock.Event) bool {
	return w.Kind == lock.Withdrawn || h.rules.Away != nil && h.rules.Away(w)
}

// fits reports whether the waiter is known to be compatible with the held leases.
func (h *eventChecker) fits(w lock.Event) bool {
	conflicts := func(g lock.Event) bool { return conflict(w.Mode, g.Mode) }
	for _, others := range []map[int]lock.Event{h.held, h.graces} {
		if slices.ContainsFunc(slices.Collect(maps.Values(others)), conflicts) {
			return false
		}
	}
	if w.Mode != lock.Permit || len(h.held)+len(h.graces) == 0 {
		return true
	}
	asked := h.permits(w)
	return asked > 0 && permitsOf(h.held)+permitsOf(h.graces)+asked <= h.rules.Capacity
}
