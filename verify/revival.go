package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// An endEvidence is a call whose answer shows that a lease has ended.
type endEvidence struct {
	description string
	call        *Call
	conclusive  bool // the answer was a decision; otherwise a plain read
	// at is when the lease was over by the clock alone, zero if an event has recorded its end. An epoch that has no
	// event from then on or later may give the lease its TTL again.
	at time.Time
	// released reports whether the holder may have released the lease before.
	released bool
}

// noRevival checks that no lease was used after it was known to have ended.
func (x *examination) noRevival(t *lockHistory, c *Check) {
	later := t.superseded()
	for _, l := range t.leases {
		first := l.firstAnswer()
		if first == nil || l.group == nil {
			continue
		}
		evidence := t.endEvidence(l, first, later[l])
		if len(evidence) > 0 {
			c.Examined++
		}
		for _, o := range evidence {
			if again := t.usedAfter(l, o); again != nil && !t.mayLiveAgain(o, again) {
				c.violated(t, fmt.Sprintf("The lease of %q with token %d %s, but was used again later.", l.holder,
					l.token, o.description),
					[]*Call{first, o.call, again}, l.granted, l.ended)
				break
			}
		}
		t.renewedAfterEnd(l, c)
		t.renewedAfterVerification(l, c)
	}
}

// mayLiveAgain reports whether an epoch may have begun between the evidence and the later use, whose database did not
// know that the lease was over.
func (t *lockHistory) mayLiveAgain(o endEvidence, again *Call) bool {
	k, last := t.epochs.ofCall(o.call)
	_, used := t.epochs.ofCall(again)
	return !o.at.IsZero() && used > k && (k != last || o.at.After(t.epochs[k+1].ended))
}

// lockRead returns the lock that a read returned, false if the call was not a read.
func (c *Call) lockRead() (lock.Lock, bool) {
	seen, ok := c.Response.(lock.Lock)
	return seen, ok && (c.Verb == ReadLock || c.Verb == Watch)
}

// verifiedEnded reports whether the call was a verification that found the lease's token ended or stale.
func (l *lease) verifiedEnded(c *Call) bool {
	asked, _ := c.Request.(lock.Verify)
	got, ok := c.Response.(lock.Verification)
	return ok && got.Token == l.token && (got.Status == lock.Ended || got.Status == lock.Stale) && l.hasSlot(asked.Slot)
}

// renewedAfterVerification checks that no renewal was answered, with an end beyond the time of a
// verification, after that verification had found the lease ended: a renewal decided earlier would have
// been seen by the verification, and a later one had to be refused.
func (t *lockHistory) renewedAfterVerification(l *lease, c *Check) {
	for _, v := range t.calls {
		k, last := t.epochs.ofCall(v)
		if !l.verifiedEnded(v) || k != last {
			continue
		}
		c.Examined++
		at := v.Response.(lock.Verification).CheckedAt
		if l.granted != nil && (t.epochs.of(l.granted) > k || t.epochs.of(l.granted) == k && l.granted.At.After(at)) {
			continue // it was about an earlier reader in the same slot and phase
		}
		asked, _ := v.Request.(lock.Verify)
		if first := l.firstAnswer(); asked.Slot != nil && l.mode == lock.Shared && (first == nil || first.Answered > v.Sent) {
			continue // likewise: the grant may have been committed later, though its instant is earlier
		}
		if l.ended != nil && l.ended.Kind != lock.Expired && (t.epochs.of(l.ended) < k || !l.ended.At.After(at)) {
			continue // it was released or revoked after its renewals
		}
		for _, r := range l.renewed {
			if g := grant(r); r.Answered > v.Sent && l.answeredIn(t, k, r) && g.ExpiresAt.Add(g.Grace).After(at) {
				c.violated(t, fmt.Sprintf("The lease of %q with token %d was verified to have ended at %s, "+
					"but a renewal answered later extended it to %s.",
					l.holder, l.token, clock(at), clock(g.ExpiresAt)), []*Call{l.firstAnswer(), v, r}, l.granted,
					l.ended)
				return
			}
		}
	}
}

// endEvidence returns the first evidence of each kind that the lease has ended.
func (t *lockHistory) endEvidence(l *lease, first, later *Call) []endEvidence {
	var evidence []endEvidence
	var lost, released, unseen, verified *Call
	sooner := func(a, b *Call) *Call {
		if a == nil || b.Answered < a.Answered {
			return b
		}
		return a
	}
	for _, c := range slices.Concat(l.group.acquires, l.group.renews, l.group.releases) {
		var e *lock.Error
		switch {
		case errors.As(c.Err, &e) && e.Code == lock.ErrLeaseLost && (e.Token == l.token || c.Sent > first.Answered) &&
			!l.atMaxHold(e):
			lost = sooner(lost, c)
		case c.Verb == Release && c.Outcome() == Done && c.Sent > first.Answered:
			released = sooner(released, c)
		}
	}
	for _, c := range t.calls {
		if read, ok := c.lockRead(); ok && c.Sent > first.Answered && !l.shownIn(read) && !l.renewalInFlight(c) {
			unseen = sooner(unseen, c)
		}
		if c.Sent > first.Answered && l.verifiedEnded(c) {
			verified = sooner(verified, c)
		}
	}
	if lost != nil {
		evidence = append(evidence, endEvidence{description: "was reported lost", call: lost, conclusive: true, released: saysReleased(lost)})
	}
	if released != nil {
		evidence = append(evidence, endEvidence{description: "was released", call: released, conclusive: true, released: true})
	}
	if later != nil {
		evidence = append(evidence,
			endEvidence{description: "was followed by a conflicting one", call: later, conclusive: true, released: l.mayBeReleased(later.Answered)})
	}
	if verified != nil {
		evidence = append(evidence, endEvidence{description: "was verified to have ended", call: verified, conclusive: true, released: true,
			at: verified.Response.(lock.Verification).CheckedAt})
	}
	if unseen != nil {
		read, _ := unseen.lockRead()
		evidence = append(evidence, endEvidence{description: "was missing from a read", call: unseen, released: true, at: read.AsOf})
	}
	return evidence
}

func saysReleased(c *Call) bool {
	var e *lock.Error
	return errors.As(c.Err, &e) && (e.Ended == lock.Released || e.Ended == 0)
}

// mayBeReleased reports whether a release of the lease was sent before that time.
func (l *lease) mayBeReleased(before time.Duration) bool {
	return slices.ContainsFunc(l.group.releaseCalls(), func(c *Call) bool { return c.Sent < before && mayEnd(c) })
}

// shownIn reports whether a read showed the lease. A revoked lease in its grace has ended.
func (l *lease) shownIn(read lock.Lock) bool {
	return slices.ContainsFunc(read.Leases, func(h lock.LeaseInfo) bool {
		return !h.Revoked && h.Token == l.token && h.Slot == l.slot && h.Holder == l.holder
	})
}

// renewalInFlight reports whether a renewal may have been decided before the read and committed after it.
func (l *lease) renewalInFlight(read *Call) bool {
	return slices.ContainsFunc(l.group.renews, func(c *Call) bool {
		return c.Sent < read.Answered && (c.Outcome() == Unknown || c.Outcome() == Done && c.Answered > read.Sent)
	})
}

// usedAfter returns a call that was sent after the lease had ended and succeeded all the same, nil
// if there is none.
func (t *lockHistory) usedAfter(l *lease, o endEvidence) *Call {
	for _, c := range slices.Concat(l.acquired, l.renewed) {
		if c.Sent > o.call.Answered {
			return c
		}
	}
	for _, c := range l.group.releases {
		if c.Outcome() == Done && c.Sent > o.call.Answered && !o.released && !l.mayBeReleased(c.Sent) {
			return c
		}
	}
	if !o.conclusive {
		return nil
	}
	for _, c := range t.calls {
		if read, ok := c.lockRead(); ok && c.Sent > o.call.Answered && l.shownIn(read) {
			return c
		}
		if v, ok := c.Response.(lock.Verification); ok && v.Token == l.token && v.Status == lock.Current &&
			c.Sent > o.call.Answered && l.mode == lock.Exclusive {
			return c
		}
	}
	return nil
}

// superseded returns, for each lease, the first answer that mentions a later, conflicting lease.
func (t *lockHistory) superseded() map[*lease]*Call {
	leases := slices.Clone(t.leases)
	slices.SortStableFunc(leases, func(a, b *lease) int { return cmp.Compare(b.token, a.token) })
	by := map[*lease]*Call{}
	modes, slots := map[lock.Mode]*Call{}, map[int]*Call{}
	sooner := func(a, b *Call) *Call {
		if a == nil || b != nil && b.Answered < a.Answered {
			return b
		}
		return a
	}
	for from := 0; from < len(leases); {
		to := from
		for to < len(leases) && leases[to].token == leases[from].token {
			l := leases[to]
			for mode, c := range modes {
				if mode != lock.Permit || l.mode != lock.Permit {
					by[l] = sooner(by[l], c)
				}
			}
			if l.mode == lock.Permit {
				for _, slot := range l.slots.All(l.slot) {
					by[l] = sooner(by[l], slots[slot])
				}
			}
			to++
		}
		for _, l := range leases[from:to] {
			if first := l.firstAnswer(); first != nil {
				modes[l.mode] = sooner(modes[l.mode], first)
				for _, slot := range l.slots.All(l.slot) {
					slots[slot] = sooner(slots[slot], first)
				}
			}
		}
		from = to
	}
	return by
}

// renewedAfterEnd checks that no renewal was decided after the lease had ended.
func (t *lockHistory) renewedAfterEnd(l *lease, c *Check) {
	if l.ended == nil {
		return
	}
	k, longest := t.epochs.of(l.ended), time.Duration(0)
	for _, call := range slices.Concat(l.acquired, l.renewed, l.group.renews) {
		r, _ := call.Request.(lock.Renew)
		longest = max(longest, grant(call).TTL, r.TTL)
	}
	for _, call := range l.renewed {
		c.Examined++
		first, last := t.epochs.ofCall(call)
		at := grant(call).ExpiresAt.Add(-longest)
		if first > k || first == k && last == k && at.After(l.ended.At) {
			c.violated(t,
				fmt.Sprintf("The lease of %q with token %d was renewed at %s at the earliest, but had ended at %s.",
					l.holder, l.token, clock(at), clock(l.ended.At)), []*Call{l.firstAnswer(), call}, l.granted,
				l.ended)
		}
	}
}
