package lock_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// An eventChecker reconstructs a lock from its events.
type eventChecker struct {
	holds    map[leaseKey]lock.Event // active grants
	revoked  map[leaseKey]lock.Event // revoked grants, perhaps in grace
	queue    []int64                 // places in the queue
	newest   lock.Token
	revision int64
	at       time.Time
}

// A leaseKey identifies a lease: shared leases have the same token in different slots.
type leaseKey struct {
	slot  int
	token lock.Token
}

func newEventChecker() *eventChecker {
	return &eventChecker{holds: map[leaseKey]lock.Event{}, revoked: map[leaseKey]lock.Event{}}
}

// add applies the events and compares the result with the record.
func (s *eventChecker) add(events []lock.Event, now lock.Record) error {
	for _, e := range events {
		if e.Revision != s.revision+1 || e.At.Before(s.at) {
			return fmt.Errorf("event %d at %v follows %d at %v", e.Revision, e.At, s.revision, s.at)
		}
		s.revision, s.at = e.Revision, e.At
		if err := s.apply(e); err != nil {
			return fmt.Errorf("%v of token %d, place %d: %w", e.Kind, e.Token, e.Place, err)
		}
	}
	return s.compare(now)
}

func (s *eventChecker) apply(e lock.Event) error {
	key := leaseKey{e.Slot, e.Token}
	granted, held := s.holds[key]
	again := false // the rest of the grace of a revoked lease is skipped, which is of no session any more
	switch e.Kind {
	case lock.Queued:
		if e.Place != e.Revision {
			return fmt.Errorf("the place is not its revision, %d", e.Revision)
		}
		s.queue = append(s.queue, e.Place)
	case lock.Dequeued:
		return s.removePlace(e.Place)
	case lock.Frozen, lock.Thawed:
		return nil
	case lock.Granted:
		return s.grant(key, e)
	case lock.Opened:
		if held || e.Token != s.newest {
			return fmt.Errorf("the newest token is %d, the holds are %v", s.newest, s.holds)
		}
		return nil
	case lock.Refused:
		if held || e.Newest != s.newest || e.Token > s.newest || (e.HeldBy == "") != (len(s.holds) == 0) {
			return fmt.Errorf("the newest token is %d, the holds are %v", s.newest, s.holds)
		}
		return nil
	case lock.Revoked:
		if before, was := s.revoked[key]; was && !held {
			again = true
			delete(s.revoked, key)
			granted, held = before, true
		} else {
			s.revoked[key] = granted
		}
		fallthrough
	default:
		if !held || granted.Holder != e.Holder || granted.Mode != e.Mode || granted.Slots != e.Slots ||
			!slices.Equal(granted.Set, e.Set) || e.Session != granted.Session && !again {
			return fmt.Errorf("no such lease in %v", s.holds)
		}
		if e.Kind == lock.MetadataUpdated || e.Kind == lock.Suspected {
			return nil
		}
		delete(s.holds, key)
		if e.Kind == lock.Withdrawn && e.Place > 0 {
			if e.Place != granted.Place {
				return fmt.Errorf("it was granted from place %d", granted.Place)
			}
			s.queue = append(s.queue, e.Place)
			slices.Sort(s.queue)
		}
	}
	return nil
}

// removePlace removes the place from the queue.
func (s *eventChecker) removePlace(place int64) error {
	i := slices.Index(s.queue, place)
	if i < 0 {
		return fmt.Errorf("no such place in %v", s.queue)
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return nil
}

func (s *eventChecker) grant(key leaseKey, e lock.Event) error {
	joins := false
	for o, held := range s.holds {
		overlap := slices.ContainsFunc(held.Slots.All(held.Slot), func(slot int) bool { return e.Slots.Include(e.Slot, slot) })
		if held.Mode != e.Mode || e.Mode == lock.Exclusive || overlap {
			return fmt.Errorf("beside %+v", held)
		}
		if joins = e.Mode == lock.Shared; joins && o.token != e.Token {
			return fmt.Errorf("beside token %d of another reader", o.token)
		}
	}
	if !joins && e.Token <= s.newest {
		return fmt.Errorf("after token %d", s.newest)
	}
	s.newest = e.Token
	s.holds[key] = e
	delete(s.revoked, key)
	if e.Place == 0 {
		return nil
	}
	return s.removePlace(e.Place)
}

// compare compares the reconstructed lock with the record.
func (s *eventChecker) compare(now lock.Record) error {
	revoked := 0
	granted := map[lock.LeaseID]bool{}
	for _, l := range now.Leases {
		granted[l.ID] = true
		e, ok := s.holds[leaseKey{l.Slot, l.Token}]
		if l.Revoked() {
			revoked++
			e, ok = s.revoked[leaseKey{l.Slot, l.Token}]
		}
		if !ok || e.Mode != l.Mode || e.Holder != l.Holder || e.Slots != l.Slots {
			return fmt.Errorf("no event granted %+v", l)
		}
	}
	if s.revision != now.Revision || s.newest != now.Token || len(s.holds) != len(now.Leases)-revoked {
		return fmt.Errorf("the events give %+v, the record is %+v", s, now)
	}
	var queue []int64
	for _, w := range now.Queue {
		if !granted[w.Lease.ID] {
			queue = append(queue, w.Place)
		}
	}
	if !slices.Equal(queue, s.queue) {
		return fmt.Errorf("the events give the queue %v, the record has %v", s.queue, queue)
	}
	return nil
}
