package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// A fencedOperation is the writes of a resource with one OperationID. One of them counts; the answers to the others, its
// repetitions, are the resource as it was then.
type fencedOperation struct {
	calls []*Call // those that were answered
	lost  bool    // another one has an unknown outcome
}

func operationID(c *Call) string { return c.Request.(lock.FencedWrite).OperationID }

// findRepetitions finds the repetitions, which have no version of their own, and checks that each operation was written.
// It may take a repetition for the write only if both have the same version, token and value.
func (r *resource) findRepetitions(c *Check) {
	r.repetitions = map[*Call]bool{}
	for _, id := range slices.Sorted(maps.Keys(r.operations)) {
		o := r.operations[id]
		first := (*Call)(nil)
		for _, call := range o.calls {
			if first == nil || fencedValue(call).Version < fencedValue(first).Version {
				first = call
			}
		}
		wrote := (*Call)(nil)
		for _, call := range o.calls {
			if fencedValue(call).Version == fencedValue(first).Version && answersItself(call) && (wrote == nil || call.Sent < wrote.Sent) {
				wrote = call
			}
		}
		for _, call := range o.calls {
			if call != wrote {
				r.repetitions[call] = true
			}
		}
		if wrote == nil && !o.lost && first != nil {
			c.violated(r.lock, fmt.Sprintf("The operation %s was answered as done, but no call wrote it.", id), o.calls)
		}
	}
}

// mayRepeat reports whether the write may be a repetition. If a call with its operation has an unknown outcome, that one
// may have written, and all that were answered are repetitions.
func (r *resource) mayRepeat(call *Call) bool {
	if r.repetitions[call] {
		return true
	}
	o := r.operations[operationID(call)]
	return o != nil && o.lost
}

// answersItself reports whether the answer to the write has its token and value.
func answersItself(call *Call) bool {
	w, f := call.Request.(lock.FencedWrite), fencedValue(call)
	return w.Token == f.Token && w.Lock == f.Lock && sameJSON(w.Value, f.Value)
}
