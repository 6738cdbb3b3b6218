package locktest

import (
	"encoding/json"

	"github.com/paddock-lock/paddock/lock"
)

func metadataCases() cases {
	return cases{
		"a renewal replaces the metadata shown":                metadataVisible,
		"each of two readers has its own metadata":             metadataShared,
		"new metadata emits an event, unchanged metadata none": metadataEvent,
		"a watch sees new metadata":                            metadataWatched,
		"an ended lease cannot set metadata":                   metadataOfEndedLease,
	}
}

func (s *fixture) setMetadata(g lock.Grant, metadata string) (lock.Grant, error) {
	return s.locks.Renew(s.ctx, lock.Renew{Name: g.Name, LeaseID: g.ID, Metadata: json.RawMessage(metadata)})
}

func (s *fixture) mustSetMetadata(g lock.Grant, metadata string) lock.Grant {
	s.Helper()
	r, err := s.setMetadata(g, metadata)
	s.must(err)
	if !sameJSON(r.Metadata, json.RawMessage(metadata)) {
		s.Fatalf("the lease has the metadata %s, not %s", r.Metadata, metadata)
	}
	return r
}

func metadataVisible(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Metadata: []byte(`{"at":"a"}`)})
	if r := s.mustSetMetadata(g, `{"at":"b"}`); r.Token != g.Token || r.ID != g.ID {
		s.Errorf("the lease has changed from %+v to %+v", g.Lease, r.Lease)
	}
	if l := s.get(s.name); !sameJSON(l.Leases[0].Metadata, json.RawMessage(`{"at":"b"}`)) {
		s.Errorf("the lock shows %s", l.Leases[0].Metadata)
	}
	r, err := s.renew(g, 0)
	s.must(err)
	if !sameJSON(r.Metadata, json.RawMessage(`{"at":"b"}`)) {
		s.Errorf("a renewal without metadata changed it to %s", r.Metadata)
	}
}

func metadataShared(s *fixture) {
	a, b := s.mustAcquireShared("a"), s.mustAcquireShared("b")
	s.mustSetMetadata(b, `{"page":2}`)
	for _, h := range s.get(s.name).Leases {
		if set := h.Metadata != nil; set != (h.Slot == b.Slot) {
			s.Errorf("slot %d shows %s", h.Slot, h.Metadata)
		}
	}
	s.must(s.release(a))
	s.must(s.release(b))
}

func metadataEvent(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.mustSetMetadata(g, `{"at":"a"}`)
	s.mustSetMetadata(g, `{"at":"a"}`)
	s.must(s.release(g))
	events := s.events(s.name, 3)
	s.expectNoGaps(events)
	if e := events[1]; e.Kind != lock.MetadataUpdated || e.Token != g.Token || e.Holder != g.Holder ||
		e.Slot != g.Slot ||
		e.Mode != g.Mode {
		s.Errorf("the update has the event %+v", e)
	}
	if events[2].Kind != lock.Released {
		s.Errorf("the next event is %v", events[2].Kind)
	}
}

func metadataWatched(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	seen := s.startWatch(s.get(s.name))
	s.mustSetMetadata(g, `{"at":"a"}`)
	if l := s.awaitWatch(seen); !sameJSON(l.Leases[0].Metadata, json.RawMessage(`{"at":"a"}`)) {
		s.Errorf("the watch returned the lock with %s", l.Leases[0].Metadata)
	}
}

func metadataOfEndedLease(s *fixture) {
	g := s.acquireAndRelease(lock.Acquire{})
	_, err := s.setMetadata(g, `{"at":"a"}`)
	s.expectLost(err, lock.Released)
	if l := s.get(s.name); len(l.Leases) != 0 {
		s.Errorf("the lock has %+v", l.Leases)
	}
}
