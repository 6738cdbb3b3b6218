package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// answeredAlike checks that each answer has one lease of each lock of the set, that these have one end, and that
// none was renewed without the others.
func (s jointSet) answeredAlike(c *Check) {
	for i, r := range s.groups {
		for _, call := range slices.Concat(r.acquires, r.renews) {
			g, answered := call.Response.(lock.Grant)
			if !answered {
				continue
			}
			if call.whole == nil {
				c.violated(s.locks[i], fmt.Sprintf("A lease of %q was renewed alone, but it was acquired together with those of %s.",
					r.holder(), strings.Join(s.names, ", ")), []*Call{r.acquires[0], call})
				return
			}
			if what := s.answerDiffers(call, g, i); what != "" {
				c.violated(s.locks[i], what, []*Call{call})
				return
			}
		}
	}
}

// answerDiffers compares the lease of the ith lock in an answer with the first one. It returns what is wrong, empty
// for nothing.
func (s jointSet) answerDiffers(call *Call, g lock.Grant, i int) string {
	whole := grant(call.whole)
	if len(whole.Leases) != len(s.names) || cmp.Or(g.Name, s.names[i]) != s.names[i] {
		return fmt.Sprintf("An answer to %q does not have one lease of each of %s.", s.groups[0].holder(), strings.Join(s.names, ", "))
	}
	first := whole.Lease
	if i == 0 && (g.Token != first.Token || g.Slot != first.Slot) {
		return fmt.Sprintf("An answer to %q has the token %d, but its lease of %s has the token %d.", s.groups[0].holder(),
			first.Token, s.names[0], g.Token)
	}
	if !g.AcquiredAt.Equal(first.AcquiredAt) || !g.ExpiresAt.Equal(first.ExpiresAt) || g.TTL != first.TTL || g.Grace != first.Grace {
		return fmt.Sprintf("An answer to %q says that %s was acquired at %s and expires at %s, but %s at %s and %s.", s.groups[0].holder(),
			s.names[0], clock(first.AcquiredAt), clock(first.ExpiresAt), s.names[i], clock(g.AcquiredAt), clock(g.ExpiresAt))
	}
	return ""
}

// A setStep is an event of a set at one of its locks that happened at all of them in one decision.
type setStep struct {
	key   setStepKey
	event *lock.Event
}

// A setStepKey says which step of a set it is, the same at each of its locks.
type setStepKey struct {
	id   lock.LeaseID
	kind lock.Kind
	nth  int // of this kind, from 1
}

// setSteps returns how the sets of the lock joined its queue and were granted it, in order.
func (t *lockHistory) setSteps() (steps []setStep) {
	byHolder := map[string]*callGroup{}
	for _, r := range t.groups {
		if len(r.set) > 0 {
			byHolder[r.holder()] = r
		}
	}
	nth := map[setStepKey]int{}
	for i := range t.events {
		e := &t.events[i]
		r := byHolder[e.Holder]
		if r == nil || e.Kind != lock.Queued && e.Kind != lock.Granted {
			continue
		}
		key := setStepKey{id: r.id, kind: e.Kind}
		nth[key]++
		key.nth = nth[key]
		steps = append(steps, setStep{key, e})
	}
	return steps
}

// setOrder checks that sets which share two locks have the same order at both: they join the queues in one decision,
// and are granted in one.
func (x *examination) setOrder(c *Check) {
	steps, locks := map[string][]setStep{}, map[string]*lockHistory{}
	for _, t := range x.locks {
		steps[t.name], locks[t.name] = t.setSteps(), t
	}
	done := map[[2]string]bool{}
	for _, s := range x.jointSets() {
		for i, a := range s.names {
			for _, b := range s.names[i+1:] {
				if pair := [2]string{a, b}; !done[pair] {
					done[pair] = true
					locks[a].sameOrder(locks[b], steps[a], steps[b], c)
				}
			}
		}
	}
}

// sameOrder compares the steps that the locks t and o have in common, those of t with those of o.
func (t *lockHistory) sameOrder(o *lockHistory, steps, others []setStep, c *Check) {
	at := map[setStepKey]int{}
	for i, s := range others {
		at[s.key] = i
	}
	last, before := -1, setStep{}
	for _, s := range steps {
		i, common := at[s.key]
		if !common {
			continue
		}
		c.Examined++
		if i < last {
			var calls []*Call
			for _, r := range []*callGroup{t.groups[before.key.id], t.groups[s.key.id]} {
				calls = append(calls, r.acquires...)
			}
			c.violated(t, fmt.Sprintf("Two sets have different orders: at %s %q was %s before %q was %s, at %s after that.", t.name,
				before.event.Holder, before.event.Kind, s.event.Holder, s.event.Kind, o.name), calls, before.event, s.event)
			return
		}
		last, before = i, s
	}
}
