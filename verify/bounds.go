package verify

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// Bounds narrow when operations may have taken effect, by what their answers say about the
// transitions before and after. Every possible order stays possible; impossible ones are ruled out
// sooner.
type bounds struct {
	*lockHistory
	chain []*operation // transitions, in order
	// tokens are the granted ones in ascending order. first is the index of the transition that granted
	// each token, later that of the first transition that granted a greater one.
	tokens       []lock.Token
	first, later []int
	holders      map[string][]*lease // by holder
}

// bounds returns the bounds given by the transitions.
func (t *lockHistory) bounds(chain []*operation) bounds {
	w := bounds{lockHistory: t, chain: chain, holders: map[string][]*lease{}}
	first := map[lock.Token]int{}
	for _, l := range t.leases {
		if l.granted == nil {
			continue
		}
		w.holders[l.holder] = append(w.holders[l.holder], l)
		i := w.index(l.granted.Revision)
		if known, ok := first[l.token]; !ok || i < known {
			first[l.token] = i
		}
	}
	w.tokens = slices.Sorted(maps.Keys(first))
	w.first, w.later = make([]int, len(w.tokens)), make([]int, len(w.tokens))
	later := len(chain)
	for i := len(w.tokens) - 1; i >= 0; i-- {
		w.first[i], w.later[i] = first[w.tokens[i]], later
		later = min(later, w.first[i])
	}
	return w
}

// narrow narrows the operations of calls, and the transitions around them. Contradictory bounds stay
// as they are: the search will find no order. It returns the operations that can have an effect.
func (w bounds) narrow(ops []*operation) []*operation {
	first, last := make([]int, len(ops)), make([]int, len(ops))
	for i, o := range ops {
		first[i], last[i] = w.between(o)
		if o.to > w.last {
			continue // it may never have taken effect
		}
		if i := first[i]; i >= 0 && o.to >= w.chain[i].from {
			w.chain[i].to = min(w.chain[i].to, o.to)
		}
		if i := last[i]; i < len(w.chain) && o.from <= w.chain[i].to {
			w.chain[i].from = max(w.chain[i].from, o.from)
		}
	}
	tighten(w.chain)
	var left []*operation
	for i, o := range ops {
		if w.within(o, first[i], last[i]) || o.call.Outcome() != Unknown {
			left = append(left, o)
		}
	}
	return left
}

// within places the operation after one transition and before another, false if that is impossible.
func (w bounds) within(o *operation, first, last int) bool {
	from, to := o.from, o.to
	if first >= 0 {
		from = max(from, w.chain[first].from)
	}
	if last < len(w.chain) {
		to = min(to, w.chain[last].to)
	}
	if from > to {
		return false
	}
	o.from, o.to = from, to
	return true
}

// between returns the transitions after and before which the operation must be.
func (w bounds) between(o *operation) (first, last int) {
	if seen, ok := o.call.Response.(lock.Lock); ok && seen.Revision > 0 {
		first = w.index(seen.Revision+1) - 1
		o.before = 0
		if first >= 0 {
			o.before = w.chain[first].revision
		}
		return first, first + 1
	}
	first, last = -1, len(w.chain)
	if token, ok := newestToken(o.call); ok {
		first, last = w.whileNewest(token)
	} else if r := w.groupOf(o.call); r != nil {
		first, last = w.whileHeld(r, o.call)
	}
	if l := w.blockingLease(o.call); l != nil {
		first = max(first, w.index(l.granted.Revision))
		if l.ended != nil && l.ended.Kind != lock.Revoked { // a revoked lease may block in its grace
			last = min(last, w.index(l.ended.Revision))
		}
	}
	return first, last
}

// blockingLease returns the lease that caused the refusal, nil if there is none or if it is ambiguous.
func (w bounds) blockingLease(c *Call) *lease {
	var e *lock.Error
	if !errors.As(c.Err, &e) || e.Code != lock.ErrHeld || e.Holder == "" {
		return nil
	}
	if known := w.holders[e.Holder]; len(known) == 1 {
		return known[0]
	}
	return nil
}

// index returns the index of the first transition with at least revision r.
func (w bounds) index(r int64) int {
	i, _ := slices.BinarySearchFunc(w.chain, r, func(o *operation, r int64) int { return cmp.Compare(o.revision, r) })
	return i
}

// newestToken returns the newest token according to the answer, false if the answer does not say.
func newestToken(c *Call) (lock.Token, bool) {
	switch got := c.Response.(type) {
	case lock.Lock:
		return got.Token, true
	case lock.Verification:
		return got.Newest, true
	case lock.FencedValue:
		w, ok := c.Request.(lock.FencedWrite)
		return w.Token, ok && w.Slot == 0
	}
	var e *lock.Error
	if errors.As(c.Err, &e) && e.Code == lock.ErrHeld {
		return e.Newest, e.Newest != 0
	}
	return 0, false
}

// whileNewest returns the transitions between which the token was the newest.
func (w bounds) whileNewest(token lock.Token) (first, last int) {
	i, found := slices.BinarySearch(w.tokens, token)
	if !found {
		return -1, len(w.chain)
	}
	return w.first[i], w.later[i]
}

// whileHeld returns the transitions between which the call must have been, if its group has one lease:
// between grant and end, or after the end.
func (w bounds) whileHeld(r *callGroup, c *Call) (first, last int) {
	first, last = -1, len(w.chain)
	if len(r.leases) != 1 || r.leases[0].granted == nil {
		return first, last
	}
	l := r.leases[0]
	held := c.Outcome() == Done && c.Verb != Release
	if held || c.Outcome() == Unknown { // a call without an answer has no effect after the end
		if first = w.index(l.granted.Revision); l.ended != nil {
			last = w.index(l.ended.Revision)
		}
		if !held {
			first = -1
		}
		return first, last
	}
	var e *lock.Error
	refused := errors.As(c.Err, &e)
	if answer := l.firstAnswer(); l.ended == nil || answer == nil || answer.Answered >= c.Sent ||
		refused && (e.Code != lock.ErrLeaseLost || l.atMaxHold(e)) {
		return first, last
	}
	return w.index(l.ended.Revision), last
}
