package locktest

import (
	"encoding/json"

	"github.com/paddock-lock/paddock/lock"
)

func proclaiming() cases {
	return cases{
		"a renewal puts other metadata on the lease, for all to see": proclaimSeen,
		"one of two that share the lock proclaims for itself":        proclaimShared,
		"metadata proclaimed is a transition, again it is none":      proclaimOnce,
		"who watches the lock is told of other metadata":             proclaimWatched,
		"a lease that has ended proclaims nothing":                   proclaimLost,
	}
}

func (s *scene) proclaim(g lock.Grant, metadata string) (lock.Grant, error) {
	return s.locks.Renew(s.ctx, lock.Renew{Name: g.Name, LeaseID: g.ID, Metadata: json.RawMessage(metadata)})
}

func (s *scene) proclaimed(g lock.Grant, metadata string) lock.Grant {
	s.Helper()
	r, err := s.proclaim(g, metadata)
	s.must(err)
	if !sameJSON(r.Metadata, json.RawMessage(metadata)) {
		s.Fatalf("the lease has the metadata %s, not %s", r.Metadata, metadata)
	}
	return r
}

func proclaimSeen(s *scene) {
	g := s.granted(lock.Acquire{Metadata: []byte(`{"at":"a"}`)})
	if r := s.proclaimed(g, `{"at":"b"}`); r.Token != g.Token || r.ID != g.ID {
		s.Errorf("the lease has changed from %+v to %+v", g.Lease, r.Lease)
	}
	if l := s.look(s.name); !sameJSON(l.Leases[0].Metadata, json.RawMessage(`{"at":"b"}`)) {
		s.Errorf("the lock shows %s", l.Leases[0].Metadata)
	}
	r, err := s.renew(g, 0)
	s.must(err)
	if !sameJSON(r.Metadata, json.RawMessage(`{"at":"b"}`)) {
		s.Errorf("a renewal without metadata has put %s there", r.Metadata)
	}
}

func proclaimShared(s *scene) {
	a, b := s.reads("a"), s.reads("b")
	s.proclaimed(b, `{"page":2}`)
	for _, h := range s.look(s.name).Leases {
		if said := h.Metadata != nil; said != (h.Slot == b.Slot) {
			s.Errorf("slot %d shows %s", h.Slot, h.Metadata)
		}
	}
	s.must(s.release(a))
	s.must(s.release(b))
}

func proclaimOnce(s *scene) {
	g := s.granted(lock.Acquire{})
	s.proclaimed(g, `{"at":"a"}`)
	s.proclaimed(g, `{"at":"a"}`)
	s.must(s.release(g))
	events := s.recorded(s.name, 3)
	s.gapless(events)
	if e := events[1]; e.Kind != lock.MetadataUpdated || e.Token != g.Token || e.Holder != g.Holder || e.Slot != g.Slot || e.Mode != g.Mode {
		s.Errorf("the proclamation is told as %+v", e)
	}
	if events[2].Kind != lock.Released {
		s.Errorf("after it there was %v", events[2].Kind)
	}
}

func proclaimWatched(s *scene) {
	g := s.granted(lock.Acquire{})
	seen := s.watches(s.look(s.name))
	s.proclaimed(g, `{"at":"a"}`)
	if l := s.sees(seen); !sameJSON(l.Leases[0].Metadata, json.RawMessage(`{"at":"a"}`)) {
		s.Errorf("the watch returned the lock with %s", l.Leases[0].Metadata)
	}
}

func proclaimLost(s *scene) {
	g := s.released(lock.Acquire{})
	_, err := s.proclaim(g, `{"at":"a"}`)
	s.lost(err, lock.Released)
	if l := s.look(s.name); len(l.Leases) != 0 {
		s.Errorf("the lock has %+v", l.Leases)
	}
}
