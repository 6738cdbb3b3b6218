package verify

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// blockingReads checks that each blocking read of the lock blockingReads soon after it was known
// that the lock had changed, and nothing that is older than what it was given.
func (x *examination) blockingReads(t *lockHistory, c *Check) {
	n := x.index
	for _, call := range t.calls {
		w, ok := call.Request.(lock.Watch)
		if !ok || call.Err != nil && !call.Cancelled {
			continue
		}
		c.Examined++
		seen, got := revisionOf(w.Seen), call.Response
		if l, ok := got.(lock.Lock); ok && l.Revision < seen && !t.hasEpoch() {
			c.violated(t, fmt.Sprintf("A blocking read that had seen revision %d returned revision %d.", seen, l.Revision), []*Call{call})
		}
		i, found := t.event(seen + 1)
		if !found {
			continue
		}
		changed := &t.events[i]
		proven, known := n.proven[changed.ID]
		if !known {
			continue
		}
		late := n.overdue(call.Via, max(proven, call.Sent), call.Answered)
		if late == 0 {
			continue
		}
		how := "returned"
		if call.Cancelled {
			how = "was given up without an answer"
		}
		c.violated(t, fmt.Sprintf("A blocking read that had seen revision %d %s at %s, and the lock was known at %s to have changed: %v of calm too late.",
			seen, how, sinceStart(call.Answered), sinceStart(proven), late), []*Call{call}, changed)
	}
}

// revisionOf returns the revision with which the version of a lock begins, zero for none.
func revisionOf(version string) int64 {
	text, _, _ := strings.Cut(version, ".")
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return revision
}
