package store

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// seats are the calls that wait with this replica.
type seats struct {
	limit int // of calls that wait with all replicas together

	mu      sync.Mutex
	calls   map[lock.Attachment]*seat
	served  []lock.Attachment // that left with a grant, of late; a ring
	next    int               // where in it the next goes
	taken   sync.WaitGroup
	others  int           // how many wait with other replicas, as of the last beat
	drained chan struct{} // closed by drain
}

// maxServed is how many calls that left with their grant are remembered: more than can
// be answered between a commit and the telling of those whom it has promoted.
const maxServed = 4096

// A seat is one call that waits.
type seat struct {
	name       string
	lease      lock.LeaseID
	attachment lock.Attachment
	place      int64         // zero until it has joined the queue; guarded by seats.mu
	granted    chan outcome  // gets the grant, once
	again      chan struct{} // has a value when the call should ask how it stands
}

func newSeats(limit int) *seats {
	return &seats{limit: limit, calls: make(map[lock.Attachment]*seat), drained: make(chan struct{})}
}

// take returns a seat for the call, to be given back to leave, and whether as many
// wait already as may; or a refusal if this replica is shutting down.
func (s *seats) take(a lock.Acquire) (t *seat, full bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining() {
		return nil, false, stopping()
	}
	full = len(s.calls)+s.others >= s.limit
	t = &seat{
		name: a.Name, lease: a.LeaseID, attachment: lock.Attachment(1 + rand.Int64N(1<<62)),
		granted: make(chan outcome, 1), again: make(chan struct{}, 1),
	}
	s.calls[t.attachment] = t
	s.taken.Add(1)
	return t, full, nil
}

// leave gives the seat back, of a call that was granted the lock or was not.
func (s *seats) leave(t *seat, granted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, t.attachment)
	if granted {
		if len(s.served) < maxServed {
			s.served = append(s.served, 0)
		}
		s.served[s.next] = t.attachment
		s.next = (s.next + 1) % maxServed
	}
	s.taken.Done()
}

// joined notes the place that the call has in the queue.
func (s *seats) joined(t *seat, place int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.place = place
}

// grant tells the call of its lease and returns true, or false if it has left without
// it. One whose wait was over just then has been answered with it by a command of its
// own, perhaps before whoever promoted it came to tell.
func (s *seats) grant(a lock.Attachment, o outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.calls[a]
	if t == nil {
		return slices.Contains(s.served, a)
	}
	select {
	case t.granted <- o:
	default: // told before
	}
	return true
}

// ask has the calls ask how they stand.
func (s *seats) ask(attachments ...lock.Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range attachments {
		if t := s.calls[a]; t != nil {
			t.ask()
		}
	}
}

// askAll has all calls ask how they stand.
func (s *seats) askAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.calls {
		t.ask()
	}
}

func (t *seat) ask() {
	select {
	case t.again <- struct{}{}:
	default:
	}
}

// A standing is where the calls that have joined a queue believe to be: a slice a
// column of sql/unseated.sql.
type standing struct {
	names               []string
	places, attachments []int64
}

// standing returns that of all calls, and how many calls there are.
func (s *seats) standing() (standing, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var st standing
	for _, t := range s.calls {
		if t.place > 0 {
			st.names = append(st.names, t.name)
			st.places = append(st.places, t.place)
			st.attachments = append(st.attachments, int64(t.attachment))
		}
	}
	return st, len(s.calls)
}

// heardOf notes how many wait with the other replicas.
func (s *seats) heardOf(others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = others
}

// drain has all calls leave, and lets no further ones in.
func (s *seats) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining() {
		close(s.drained)
	}
}

// draining is whether drain was called.
func (s *seats) draining() bool {
	select {
	case <-s.drained:
		return true
	default:
		return false
	}
}
