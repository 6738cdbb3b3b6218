package guard

import "sync"

// A State is the state of a Lease.
type State int

// The states of a lease.
const (
	// Held means that the last renewal succeeded.
	Held State = iota + 1
	// AtRisk means that the last renewal failed and is being retried. The work may continue
	// until the deadline.
	AtRisk
	// Lost means that the lease has ended or may end any moment. Stop the work.
	Lost
	// Released means that Release was called.
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

// A stateChange is a new state and its reason.
type stateChange struct {
	state State
	err   error
}

// A stateNotifier passes state changes to a callback, one at a time and in order, from any goroutine.
type stateNotifier struct {
	callback func(State, error) // may be nil

	mu         sync.Mutex
	pending    []stateChange
	delivering bool
}

// enqueue queues a change. It does not call the callback, so it may be called with locks held.
func (n *stateNotifier) enqueue(c stateChange) {
	if n.callback == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = append(n.pending, c)
}

// deliver passes on the queued changes, unless another goroutine is doing so.
func (n *stateNotifier) deliver() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.delivering {
		return
	}
	n.delivering = true
	defer func() { n.delivering = false }()
	for len(n.pending) > 0 {
		c := n.pending[0]
		n.pending = n.pending[1:]
		n.invoke(c)
	}
}

// invoke calls the callback. It releases mu, which the caller holds, during the call.
func (n *stateNotifier) invoke(c stateChange) {
	n.mu.Unlock()
	defer n.mu.Lock()
	n.callback(c.state, c.err)
}
