package paddock

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A Wait is a waiter in the events of its lock, from when it joined the queue until it left it.
type Wait struct {
	Place    int64
	Mode     lock.Mode
	Holder   string
	JoinedAt time.Time  // zero if the events begin after that
	LeftAt   time.Time  // zero while it waits
	End      lock.Kind  // Granted or Dequeued; zero while it waits
	Reason   string     // of a Dequeued end
	Cycle    lock.Cycle // of a deadlock that ended it
}

// A Timeline is what the events of one lock say about its leases and its waiters.
type Timeline struct {
	Holds []lock.Hold // in the order of their grants; first those that were granted before the events
	Waits []Wait      // in the order in which they joined, likewise
}

// TimelineOf pairs the beginnings among the events of one lock with the ends. The events must be in the order of their
// ids, without gaps between them; kinds may be left out altogether.
func TimelineOf(events []lock.Event) Timeline {
	var t Timeline
	leases, places := map[int]int{}, map[int64]int{} // from slot and place to the index of what has not ended
	for _, e := range events {
		switch e.Kind {
		case lock.Granted:
			leases[e.Slot] = len(t.Holds)
			t.Holds = append(t.Holds, holdOf(e))
			t.Holds[leases[e.Slot]].GrantedAt = e.At
			t.endWait(places, e)
		case lock.Released, lock.Expired, lock.Revoked, lock.Withdrawn:
			t.endHold(leases, e)
			if e.Place > 0 { // back in the queue
				places[e.Place] = len(t.Waits)
				t.Waits = append(t.Waits, Wait{Place: e.Place, Mode: e.Mode, Holder: e.Holder, JoinedAt: e.At})
			}
		case lock.Queued:
			places[e.Place] = len(t.Waits)
			t.Waits = append(t.Waits, Wait{Place: e.Place, Mode: e.Mode, Holder: e.Holder, JoinedAt: e.At})
		case lock.Dequeued:
			t.endWait(places, e)
		}
	}
	slices.SortStableFunc(t.Holds, func(a, b lock.Hold) int { return a.GrantedAt.Compare(b.GrantedAt) })
	slices.SortStableFunc(t.Waits, func(a, b Wait) int { return a.JoinedAt.Compare(b.JoinedAt) })
	return t
}

func holdOf(e lock.Event) lock.Hold {
	return lock.Hold{Slot: e.Slot, Slots: e.Slots, Mode: e.Mode, Holder: e.Holder, Token: e.Token}
}

// endHold ends the lease in the slot of e. A second Revoked event, which skips the rest of the grace, changes nothing.
func (t *Timeline) endHold(leases map[int]int, e lock.Event) {
	i, known := leases[e.Slot]
	if !known {
		skipsGrace := func(h lock.Hold) bool { return h.Slot == e.Slot && h.Token == e.Token && h.End == lock.Revoked }
		if e.Kind == lock.Revoked && slices.ContainsFunc(t.Holds, skipsGrace) {
			return
		}
		i = len(t.Holds)
		t.Holds = append(t.Holds, holdOf(e))
	}
	delete(leases, e.Slot)
	t.Holds[i].EndedAt, t.Holds[i].End, t.Holds[i].Reason, t.Holds[i].RevokedBy = e.At, e.Kind, e.Reason, e.RevokedBy()
}

// endWait ends the wait at the place of e, if e has one.
func (t *Timeline) endWait(places map[int64]int, e lock.Event) {
	if e.Place == 0 {
		return
	}
	i, known := places[e.Place]
	if !known {
		i = len(t.Waits)
		t.Waits = append(t.Waits, Wait{Place: e.Place, Mode: e.Mode, Holder: e.Holder})
	}
	delete(places, e.Place)
	t.Waits[i].LeftAt, t.Waits[i].End, t.Waits[i].Reason, t.Waits[i].Cycle = e.At, e.Kind, e.Reason, e.Cycle
}

// A HoldQuery selects leases of the past and of now.
type HoldQuery struct {
	Name string
	// At selects the leases that were held at this instant.
	At time.Time
	// Until selects the leases that were granted before this instant. It excludes At.
	Until time.Time
	// Limit is how many leases are returned, the newest ones: 1 to MaxLimit; zero: DefaultLimit.
	Limit int
}

// Resolve returns q with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (q HoldQuery) Resolve() (HoldQuery, error) {
	if err := lock.CheckName(q.Name); err != nil {
		return q, err
	}
	if !q.At.IsZero() && !q.Until.IsZero() {
		return q, lock.Invalid("until", "cannot be combined with at; leave one of them out")
	}
	var err error
	q.Limit, err = resolveLimit(q.Limit)
	return q, err
}

// A HoldList is the answer to a HoldQuery.
type HoldList struct {
	Name  string
	Holds []lock.Hold // the newest grant first
	// Complete reports whether no lease is missing before these: otherwise its events are no longer kept, or there are
	// too many events between. A list of newest leases that has as many as its limit is complete.
	Complete bool
}

// MaxHoldEvents is how many events of a lock are read, in each direction, to answer one HoldQuery, and up to a page
// more.
const MaxHoldEvents = 10_000

// holdKinds are the kinds of events that begin or end a lease.
var holdKinds = []lock.Kind{lock.Granted, lock.Released, lock.Expired, lock.Revoked, lock.Withdrawn}

// ReadHolds pairs the grants of a lock with their ends, from the events that the service keeps.
func ReadHolds(ctx context.Context, s Service, q HoldQuery) (HoldList, error) {
	list := HoldList{Name: q.Name}
	q, err := q.Resolve()
	if err != nil {
		return list, err
	}
	events, complete, err := eventsBefore(ctx, s, q)
	if err != nil {
		return list, err
	}
	list.Complete = complete
	list.Holds = TimelineOf(events).Holds
	if !q.At.IsZero() {
		list.Holds = slices.DeleteFunc(list.Holds, func(h lock.Hold) bool { return h.End != 0 })
	}
	list.Holds = list.Holds[max(0, len(list.Holds)-q.Limit):]
	slices.Reverse(list.Holds)
	if q.At.IsZero() && q.Until.IsZero() {
		return list, nil
	}
	after := EventQuery{Names: []string{q.Name}, Kinds: holdKinds, Since: q.until()}
	if n := len(events); n > 0 {
		after.Cursor, after.Since = strconv.FormatInt(events[n-1].ID, 10), time.Time{}
	}
	return list, findEnds(ctx, s, after, list.Holds)
}

// until returns the instant before which the leases were granted, zero for none.
func (q HoldQuery) until() time.Time {
	if q.At.IsZero() {
		return q.Until
	}
	return q.At.Add(time.Microsecond) // who was granted the lock at the instant held it
}

// eventsBefore returns the last events before q.until, in the order of their ids, as far back as the answer needs.
// complete reports whether it went so far.
func eventsBefore(ctx context.Context, s Service, q HoldQuery) (events []lock.Event, complete bool, err error) {
	before := EventQuery{Names: []string{q.Name}, Kinds: holdKinds, Until: q.until(), Descending: true, Limit: DefaultLimit}
	for grants := 0; !complete; {
		page, err := s.Events(ctx, before)
		if err != nil {
			return nil, false, err
		}
		for _, e := range page.Items {
			if e.Kind == lock.Granted {
				grants++
			}
			// An exclusive lease is held by one alone, so no lease from before it was held any more.
			complete = complete || e.Revision == 1 || q.At.IsZero() && grants >= q.Limit ||
				!q.At.IsZero() && e.Kind == lock.Granted && e.Mode == lock.Exclusive
		}
		events = append(events, page.Items...)
		if page.Next == "" {
			complete = complete || !page.Gap
			break
		}
		if len(events) >= MaxHoldEvents {
			break
		}
		before.Cursor, before.Limit = page.Next, MaxLimit
	}
	slices.Reverse(events)
	return events, complete, nil
}

// findEnds sets the ends of the holds that have none yet, from the events that the query selects.
func findEnds(ctx context.Context, s Service, q EventQuery, holds []lock.Hold) error {
	open := map[int]*lock.Hold{}
	for i := range holds {
		if holds[i].End == 0 {
			open[holds[i].Slot] = &holds[i]
		}
	}
	for read := 0; len(open) > 0 && read < MaxHoldEvents; {
		page, err := s.Events(ctx, q)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		for _, e := range page.Items {
			if h := open[e.Slot]; h != nil && e.Kind != lock.Granted {
				h.EndedAt, h.End, h.Reason, h.RevokedBy = e.At, e.Kind, e.Reason, e.RevokedBy()
				delete(open, e.Slot)
			}
		}
		read += len(page.Items)
		q.Cursor, q.Limit = page.Next, MaxLimit
	}
	return nil
}
