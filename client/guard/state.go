package guard

import "sync"

// A State says how sure a holder may be of its lease.
type State int

// The states of a lease.
const (
	// Held: the last renewal succeeded.
	Held State = iota + 1
	// AtRisk: a renewal has failed and is tried again; the work may go on until the
	// deadline.
	AtRisk
	// Lost: the lease is, or may be, over. Stop the work.
	Lost
	// Released: the lease was given up.
	Released
)

// String returns the state's name.
func (s State) String() string {
	names := [...]string{Held: "held", AtRisk: "at risk", Lost: "lost", Released: "released"}
	if s < Held || int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// A change is a state that a lease has come to, and why.
type change struct {
	state State
	err   error
}

// A herald tells somebody of changes, one after the other and in their order, whoever
// noted them.
type herald struct {
	tell func(State, error) // nil for nobody

	mu      sync.Mutex
	pending []change
	telling bool
}

// note puts a change in line. It calls nobody, so it may be called with locks held.
func (h *herald) note(c change) {
	if h.tell == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = append(h.pending, c)
}

// announce tells of what was noted, unless somebody does so already.
func (h *herald) announce() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.telling {
		return
	}
	h.telling = true
	defer func() { h.telling = false }()
	for len(h.pending) > 0 {
		c := h.pending[0]
		h.pending = h.pending[1:]
		h.call(c)
	}
}

// call tells of one change, without the lock that the caller holds.
func (h *herald) call(c change) {
	h.mu.Unlock()
	defer h.mu.Lock()
	h.tell(c.state, c.err)
}
