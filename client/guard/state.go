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

// A stateChange is a state that a lease has come to, and why.
type stateChange struct {
	state State
	err   error
}

// A stateNotifier tells somebody of changes, one after the other and in their order, whoever
// noted them.
type stateNotifier struct {
	callback func(State, error) // nil for nobody

	mu         sync.Mutex
	pending    []stateChange
	delivering bool
}

// enqueue puts a change in line. It calls nobody, so it may be called with locks held.
func (h *stateNotifier) enqueue(c stateChange) {
	if h.callback == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = append(h.pending, c)
}

// deliver tells of what was noted, unless somebody does so already.
func (h *stateNotifier) deliver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.delivering {
		return
	}
	h.delivering = true
	defer func() { h.delivering = false }()
	for len(h.pending) > 0 {
		c := h.pending[0]
		h.pending = h.pending[1:]
		h.invoke(c)
	}
}

// invoke tells of one change, without the lock that the caller holds.
func (h *stateNotifier) invoke(c stateChange) {
	h.mu.Unlock()
	defer h.mu.Lock()
	h.callback(c.state, c.err)
}
