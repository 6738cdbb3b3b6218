package sim

import (
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// askSet returns the acquire of the attempt: of its lock, or of a set of it and of others. Then the guard, which
// knows of one lock, keeps all leases of the set alive.
func (a *attempt) askSet(request lock.Acquire) lock.Acquire {
	request.Locks = slices.Concat(request.Locks, a.scenario.others)
	return request
}

// own returns the grant with the lease of the attempt's own lock in front.
func (a *attempt) own(g lock.Grant, err error) (lock.Grant, error) {
	for _, l := range g.Leases {
		if l.Name == a.lock() {
			g.Lease = l
		}
	}
	return g, err
}

// verifySets checks that the leases of each set were granted, and released, together and with the same tokens. Time
// ends them together, too, but each lock records that when it next changes. The instants of the events may differ: a
// lock goes by its own time after a clock was set back.
func (w *world) verifySets() {
	type step struct {
		kind  lock.Kind
		token lock.Token
	}
	steps := func(name string, a *attempt) (steps []step) {
		for _, e := range w.events(name) {
			if e.Holder != a.holder || e.Kind != lock.Granted && e.Kind != lock.Released {
				continue
			}
			s := step{e.Kind, e.Token}
			if a.scenario.mode == lock.Shared {
				s.token = 0 // a reader has the token of the readers whom it joins
			}
			steps = append(steps, s)
		}
		return steps
	}
	for _, a := range w.attempts {
		names := a.locks()
		for _, name := range names {
			if one, other := steps(names[0], a), steps(name, a); !slices.Equal(one, other) {
				w.oracle.reportGlobal(TornSet, "the leases of %s are %v of %s, but %v of %s", a.holder, one, names[0], other, name)
			}
		}
	}
}
