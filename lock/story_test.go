package lock_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A eventChecker is what the events of a lock tell by themselves.
type eventChecker struct {
	holds    map[leaseKey]lock.Event // the grants that have not ended
	revoked  map[leaseKey]lock.Event // the grants that were revoked, of which the grace may last
	queue    []int64                 // the places that have not been granted, nor left
	newest   lock.Token
	revision int64
	at       time.Time
}

// A leaseKey is where a lease sits; its token alone would do but for shared phases.
type leaseKey struct {
	slot  int
	token lock.Token
}

func newEventChecker() *eventChecker {
	return &eventChecker{holds: map[leaseKey]lock.Event{}, revoked: map[leaseKey]lock.Event{}}
}

// add hears the events and compares what they told so far with the lock as it is.
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
	seat := leaseKey{e.Slot, e.Token}
	begun, held := s.holds[seat]
	switch e.Kind {
	case lock.Queued:
		if e.Place != e.Revision {
			return fmt.Errorf("the place is not its revision, %d", e.Revision)
		}
		s.queue = append(s.queue, e.Place)
	case lock.Dequeued:
		return s.removePlace(e.Place)
	case lock.Granted:
		return s.grant(seat, e)
	case lock.Revoked:
		if before, again := s.revoked[seat]; again && !held { // the rest of its grace is skipped
			delete(s.revoked, seat)
			begun, held = before, true
		} else {
			s.revoked[seat] = begun
		}
		fallthrough
	default:
		if !held || begun.Holder != e.Holder || begun.Mode != e.Mode {
			return fmt.Errorf("no such lease among %v", s.holds)
		}
		if e.Kind == lock.MetadataUpdated {
			return nil
		}
		delete(s.holds, seat)
		if e.Kind == lock.Withdrawn && e.Place > 0 {
			if e.Place != begun.Place {
				return fmt.Errorf("it came from place %d", begun.Place)
			}
			s.queue = append(s.queue, e.Place)
			slices.Sort(s.queue)
		}
	}
	return nil
}

// removePlace takes the place out of the queue.
func (s *eventChecker) removePlace(place int64) error {
	i := slices.Index(s.queue, place)
	if i < 0 {
		return fmt.Errorf("no such place among %v", s.queue)
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return nil
}

func (s *eventChecker) grant(seat leaseKey, e lock.Event) error {
	joins := false
	for o, held := range s.holds {
		if held.Mode != e.Mode || e.Mode == lock.Exclusive || o.slot == e.Slot {
			return fmt.Errorf("beside %+v", held)
		}
		if joins = e.Mode == lock.Shared; joins && o.token != e.Token {
			return fmt.Errorf("beside token %d of its phase", o.token)
		}
	}
	if !joins && e.Token <= s.newest {
		return fmt.Errorf("after token %d", s.newest)
	}
	s.newest = e.Token
	s.holds[seat] = e
	delete(s.revoked, seat)
	if e.Place == 0 {
		return nil
	}
	return s.removePlace(e.Place)
}

// compare compares what was told with the lock as it is.
func (s *eventChecker) compare(now lock.Record) error {
	revoked := 0
	offered := map[lock.LeaseID]bool{}
	for _, l := range now.Leases {
		offered[l.ID] = true
		e, ok := s.holds[leaseKey{l.Slot, l.Token}]
		if l.Revoked() {
			revoked++
			e, ok = s.revoked[leaseKey{l.Slot, l.Token}]
		}
		if !ok || e.Mode != l.Mode || e.Holder != l.Holder {
			return fmt.Errorf("no event tells of %+v", l)
		}
	}
	if s.revision != now.Revision || s.newest != now.Token || len(s.holds) != len(now.Leases)-revoked {
		return fmt.Errorf("the events tell of %+v, the lock is %+v", s, now)
	}
	var queue []int64
	for _, w := range now.Queue {
		if !offered[w.Lease.ID] {
			queue = append(queue, w.Place)
		}
	}
	if !slices.Equal(queue, s.queue) {
		return fmt.Errorf("the events tell of the queue %v, it is %v", s.queue, queue)
	}
	return nil
}
