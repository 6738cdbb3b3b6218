package verify_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// mutations change a random history. Each returns false if the history has nothing to change.
var mutations = map[string]func(*verify.History, *rand.Rand) bool{
	"two grants with swapped tokens": func(h *verify.History, rnd *rand.Rand) bool {
		a, b := anyCall(h, rnd, grantedExclusive), anyCall(h, rnd, grantedExclusive)
		if a == nil || a.Request.(lock.Acquire).LeaseID == b.Request.(lock.Acquire).LeaseID {
			return false
		}
		g, k := a.Response.(lock.Grant), b.Response.(lock.Grant)
		g.Token, k.Token = k.Token, g.Token
		a.Response, b.Response = g, k
		return true
	},
	"a missing release event": func(h *verify.History, rnd *rand.Rand) bool {
		i := anyEvent(h, rnd, func(e lock.Event) bool { return e.Kind == lock.Released })
		if i < 0 {
			return false
		}
		s, gone := editable{nil, h}, h.Events[i]
		s.removeEvents(func(e lock.Event) bool { return e.ID == gone.ID })
		return true
	},
	"a missing grant event": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd, grantedExclusive)
		if c == nil {
			return false
		}
		editable{nil, h}.removeEvents(of(c.Request.(lock.Acquire).Holder))
		return true
	},
	"a grant with an earlier time": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd, grantedExclusive)
		if c == nil {
			return false
		}
		g := c.Response.(lock.Grant)
		g.AcquiredAt = g.AcquiredAt.Add(-time.Millisecond)
		c.Response = g
		return true
	},
	"a lease with a later end": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd, grantedExclusive)
		if c == nil {
			return false
		}
		g := c.Response.(lock.Grant)
		g.ExpiresAt = g.ExpiresAt.Add(time.Hour)
		c.Response = g
		return true
	},
	"a grant in place of a refusal": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd,
			func(c verify.Call) bool { return c.Verb == verify.Acquire && errors.Is(c.Err, lock.ErrHeld) })
		if c == nil {
			return false
		}
		a := c.Request.(lock.Acquire)
		at := h.Events[0].At
		c.Err, c.Response = nil, lock.Grant{Lease: lock.Lease{Name: a.Name, ID: a.LeaseID, Token: 1 << 40,
			AcquiredAt: at, ExpiresAt: at.Add(a.TTL)}}
		return true
	},
	"a refusal in place of a grant": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd, func(c verify.Call) bool { return grantedExclusive(c) && attempts(h, c) == 1 })
		if c == nil {
			return false
		}
		refuse(c, lock.Error{Code: lock.ErrHeld, Holder: c.Request.(lock.Acquire).Holder})
		return true
	},
	"a refusal with deadlock in place of lock_held": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd,
			func(c verify.Call) bool { return c.Verb == verify.Acquire && errors.Is(c.Err, lock.ErrHeld) })
		if c == nil {
			return false
		}
		a := c.Request.(lock.Acquire)
		refuse(c, lock.Error{Code: lock.ErrDeadlock, Cycle: []lock.DeadlockStep{
			{Name: a.Names()[0], Holder: a.Holder, WaitsFor: "a client that is not recorded"}}})
		return true
	},
	"a renewal in place of lease_lost": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd,
			func(c verify.Call) bool { return c.Verb == verify.Renew && errors.Is(c.Err, lock.ErrLeaseLost) })
		if c == nil {
			return false
		}
		var e *lock.Error
		errors.As(c.Err, &e)
		c.Err, c.Response = nil,
			lock.Grant{Lease: lock.Lease{Token: e.Token, TTL: time.Second, ExpiresAt: e.EndedAt.Add(time.Minute)}}
		return true
	},
	"a read with an unknown token": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd, func(c verify.Call) bool { return c.Verb == verify.ReadLock && c.Err == nil })
		l := c.Response.(lock.Lock)
		l.Token += 1 << 40
		c.Response = l
		return true
	},
	"a write under an older token": func(h *verify.History, rnd *rand.Rand) bool {
		c := anyCall(h, rnd, func(c verify.Call) bool { return c.Verb == verify.WriteFenced && c.Err == nil })
		if c == nil {
			return false
		}
		w := c.Request.(lock.FencedWrite)
		w.Token--
		c.Request = w
		return true
	},
}

// grantedExclusive reports whether the call was answered with an exclusive grant.
func grantedExclusive(c verify.Call) bool {
	g, ok := c.Response.(lock.Grant)
	return ok && c.Verb == verify.Acquire && g.Mode == lock.Exclusive
}

// attempts returns how often an acquire with the same lease_id was sent.
func attempts(h *verify.History, c verify.Call) (n int) {
	for _, o := range h.Calls {
		if a, ok := o.Request.(lock.Acquire); ok && a.LeaseID == c.Request.(lock.Acquire).LeaseID {
			n++
		}
	}
	return n
}

func anyCall(h *verify.History, rnd *rand.Rand, is func(verify.Call) bool) *verify.Call {
	for _, i := range rnd.Perm(len(h.Calls)) {
		if is(h.Calls[i]) {
			return &h.Calls[i]
		}
	}
	return nil
}

func anyEvent(h *verify.History, rnd *rand.Rand, is func(lock.Event) bool) int {
	for _, i := range rnd.Perm(len(h.Events)) {
		if is(h.Events[i]) {
			return i
		}
	}
	return -1
}

// maxShownCalls is the most calls that a violation may show.
const maxShownCalls = 6

func TestMutatedHistoriesAreFound(t *testing.T) {
	t.Parallel()
	var recorded []verify.History
	for seed := range uint64(20) {
		recorded = append(recorded, recordRandom(t, seed))
	}
	for name, mutate := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mutated := 0
			for i, original := range recorded {
				seed, h := uint64(i), copyOf(original)
				h.Subscriptions = nil // or they would find the violations before the other checks
				if !mutate(&h, rand.New(rand.NewPCG(seed, 1))) {
					continue
				}
				mutated++
				r := h.Check(verify.CheckOptions{AllowOvertaking: true, Timeout: 5 * time.Second})
				if r.OK() {
					t.Errorf("seed %d: nothing was found", seed)
				}
				for _, c := range r.Checks {
					if i := slices.IndexFunc(c.Violations,
						func(v verify.Violation) bool { return len(v.Calls) > maxShownCalls }); i >= 0 {
						t.Errorf("seed %d: %s is shown with %d calls:\n%s", seed, c.Name, len(c.Violations[i].Calls),
							text(t, r))
					}
				}
			}
			if mutated < 10 {
				t.Errorf("only %d histories could be mutated", mutated)
			}
		})
	}
}
