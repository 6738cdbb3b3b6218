package verify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// Rules are what the events of one lock must prove by themselves.
//
//   - Revisions have no gaps; ids grow; instants do not run backwards.
//   - No two leases that conflict overlap, and no two have one slot.
//   - A grant that conflicts with an earlier one has a greater token, and readers
//     of one phase have the same.
//   - Waiters are granted the lock in the order of their places, nobody overtakes
//     one, and none waits on while the lock could be its.
//   - Who was queued is granted the lock or leaves, once. After a grant that was
//     withdrawn either may come again.
//   - What ends is there.
//
// Events do not tell the grace of a lease. A revoked one may keep others out for as long as
// the longest grace, and an operator may skip that, which is a second revocation.
type Rules struct {
	// Capacity is how many permits there are; zero if that is not known. Then
	// permits are only known to have slots and tokens of their own.
	Capacity int
	// AllowOvertaking allows that waiters are passed over, as those are at whose places no
	// call waits. It takes away the demand for order among waiters.
	AllowOvertaking bool
	// AllowWaiters allows that somebody still waits at the end.
	AllowWaiters bool
	// AllowClockJumps allows that instants run backwards, since another clock may have told them.
	AllowClockJumps bool
}

// Check returns an error that says what breaks the rules first, with the events
// that led there. The events must be all of one lock, in order and from the first.
func (r Rules) Check(events []lock.Event) error {
	i, err := r.first(events)
	if err == nil || i == len(events) {
		return err
	}
	return fmt.Errorf("%w; before it:%s", err, eventLines(events[max(0, i-12):i]))
}

// first returns which event breaks the rules first and how; the one after all is
// that they have ended.
func (r Rules) first(events []lock.Event) (int, error) {
	h := eventChecker{rules: r, held: map[int]lock.Event{}, graces: map[int]lock.Event{}, withdrawn: map[int64]lock.Event{}}
	for i, e := range events {
		if err := cmp.Or(h.checkOrder(e), h.step(e)); err != nil {
			return i, fmt.Errorf("%s: %w", eventText(e), err)
		}
		h.record(e)
	}
	if len(h.waiting) > 0 && !r.AllowWaiters {
		return len(events), fmt.Errorf("at the end %d still wait, the first since %s", len(h.waiting), eventText(h.waiting[0]))
	}
	return 0, nil
}

func eventText(e lock.Event) string {
	return fmt.Sprintf("revision %d, %v %v in slot %d by %q with token %d and place %d",
		e.Revision, e.Kind, e.Mode, e.Slot, e.Holder, e.Token, e.Place)
}

func eventLines(events []lock.Event) string {
	text := ""
	for _, e := range events {
		text += "\n\t" + eventText(e)
	}
	return text
}

// A eventChecker is a lock as its events tell of it so far.
type eventChecker struct {
	rules     Rules
	last      lock.Event
	newest    lock.Token
	held      map[int]lock.Event   // the grants that have not ended, by slot
	graces    map[int]lock.Event   // the revocations of leases whose grace may last, by slot
	waiting   []lock.Event         // who was queued and waits, in the order of the places
	withdrawn map[int64]lock.Event // whose grant was withdrawn: they may wait again, or not
	grantDue  *lock.Event          // what made room for the first that waits
}

func (h *eventChecker) checkOrder(e lock.Event) error {
	switch last := h.last; {
	case e.Revision != last.Revision+1:
		return fmt.Errorf("the revision is not the one after %d", last.Revision)
	case last.Revision > 0 && e.Name != last.Name:
		return fmt.Errorf("the lock is %q, before it was %q", e.Name, last.Name)
	case e.ID != 0 && e.ID <= last.ID:
		return fmt.Errorf("the id %d is not greater than %d", e.ID, last.ID)
	case e.At.Before(last.At) && !h.rules.AllowClockJumps:
		return fmt.Errorf("it is of %v, before %v", e.At, last.At)
	case h.grantDue != nil && e.At.After(h.grantDue.At):
		return fmt.Errorf("%q waits on although it might have the lock since revision %d", h.waiting[0].Holder, h.grantDue.Revision)
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
	case lock.Queued:
		return h.enqueue(e)
	case lock.Dequeued:
		if e.Token != 0 {
			return errors.New("one that leaves has no token")
		}
		_, err := h.dequeue(e)
		return err
	}
	return errors.New("there is no such kind")
}

// checkFits returns an error if the lease cannot be beside those that there are.
func (h *eventChecker) checkFits(e lock.Event) error {
	switch {
	case (e.Mode == lock.Exclusive) != (e.Slot == 0) || e.Slot < 0:
		return errors.New("exclusive leases, and no others, sit in slot 0")
	case h.rules.Capacity > 0 && e.Mode == lock.Permit && e.Slot > h.rules.Capacity:
		return fmt.Errorf("the slot is beyond the capacity %d", h.rules.Capacity)
	}
	for _, other := range h.held {
		switch {
		case e.Mode != other.Mode || e.Mode == lock.Exclusive:
			return fmt.Errorf("it conflicts with what has not ended: %s", eventText(other))
		case e.Slot == other.Slot:
			return fmt.Errorf("the slot is taken: %s", eventText(other))
		}
	}
	if e.Mode == lock.Permit && h.rules.Capacity > 0 && len(h.held) >= h.rules.Capacity {
		return fmt.Errorf("%d of %d permits are out", len(h.held), h.rules.Capacity)
	}
	return nil
}

func (h *eventChecker) checkToken(e lock.Event) error {
	if e.Mode == lock.Shared {
		for _, other := range h.held {
			if e.Token != other.Token {
				return fmt.Errorf("the phase has the token %d", other.Token)
			}
			return nil
		}
	}
	if e.Token <= h.newest {
		return fmt.Errorf("the token is not greater than %d", h.newest)
	}
	return nil
}

// checkTurn returns an error unless it is the turn of who was granted the lock.
func (h *eventChecker) checkTurn(e lock.Event) error {
	if e.Place != 0 {
		queued, err := h.dequeue(e)
		if err != nil {
			return err
		}
		if queued.Mode != e.Mode || queued.Holder != e.Holder {
			return fmt.Errorf("at that place there waited %s", eventText(queued))
		}
	}
	if h.rules.AllowOvertaking || len(h.waiting) == 0 || e.Place != 0 && e.Place < h.waiting[0].Place {
		return nil
	}
	if _, again := h.withdrawn[e.Place]; again {
		return nil
	}
	return fmt.Errorf("it overtakes %s", eventText(h.waiting[0]))
}

func (h *eventChecker) grant(e lock.Event) error {
	delete(h.withdrawn, e.Place)
	maps.DeleteFunc(h.graces, func(slot int, g lock.Event) bool { return slot == e.Slot || conflict(g.Mode, e.Mode) })
	h.held[e.Slot], h.newest = e, e.Token
	return nil
}

func (h *eventChecker) end(e lock.Event) error {
	if g, ok := h.graces[e.Slot]; ok && e.Kind == lock.Revoked && g.Token == e.Token && g.Holder == e.Holder {
		delete(h.graces, e.Slot) // the rest of the grace is skipped
		return nil
	}
	held, err := h.leaseOf(e)
	if err != nil {
		return err
	}
	delete(h.held, e.Slot)
	if e.Kind == lock.Revoked {
		h.graces[e.Slot] = e
	}
	if e.Kind == lock.Withdrawn && held.Place != 0 {
		h.withdrawn[held.Place] = held
	}
	return nil
}

// leaseOf returns how the lease that e is about began.
func (h *eventChecker) leaseOf(e lock.Event) (lock.Event, error) {
	held, ok := h.held[e.Slot]
	if !ok || held.Token != e.Token || held.Mode != e.Mode || held.Holder != e.Holder {
		return held, errors.New("there is no such lease")
	}
	return held, nil
}

func (h *eventChecker) enqueue(e lock.Event) error {
	if e.Place != e.Revision || e.Token != 0 {
		return errors.New("the place of a new waiter is its revision, and there is no token")
	}
	h.waiting = append(h.waiting, e)
	return nil
}

// dequeue takes who waits at the place of e off the queue and returns how it came
// there.
func (h *eventChecker) dequeue(e lock.Event) (lock.Event, error) {
	i := slices.IndexFunc(h.waiting, func(w lock.Event) bool { return w.Place == e.Place })
	if i >= 0 {
		w := h.waiting[i]
		h.waiting = slices.Delete(h.waiting, i, i+1)
		return w, nil
	}
	w, ok := h.withdrawn[e.Place]
	if !ok {
		return w, errors.New("nobody waits at that place")
	}
	if e.Kind == lock.Dequeued {
		delete(h.withdrawn, e.Place)
	}
	return w, nil
}

// record notes that e has happened, and whether the first that waits might have
// the lock after it: then it has it in the same instant.
func (h *eventChecker) record(e lock.Event) {
	h.last = e
	maps.DeleteFunc(h.graces, func(_ int, g lock.Event) bool { return e.At.Sub(g.At) > lock.MaxGrace })
	switch {
	case h.rules.AllowOvertaking || len(h.waiting) == 0 || !h.fits(h.waiting[0]):
		h.grantDue = nil
	case h.grantDue == nil:
		h.grantDue = &e
	}
}

// fits is whether the waiter is known to fit beside the leases that there are.
func (h *eventChecker) fits(w lock.Event) bool {
	for _, other := range h.held {
		if w.Mode != other.Mode || w.Mode == lock.Exclusive || w.Mode == lock.Permit && len(h.held) >= h.rules.Capacity {
			return false
		}
	}
	for _, g := range h.graces {
		if conflict(w.Mode, g.Mode) || w.Mode == lock.Permit && len(h.held)+len(h.graces) >= h.rules.Capacity {
			return false
		}
	}
	return true
}
