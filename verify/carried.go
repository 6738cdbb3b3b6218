package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// isOver reports whether the lease was certainly over when the epoch began, so that it stays over: all that may have
// extended it before is known, and was over by the last event.
func (l *lease) isOver(t *lockHistory, k int) bool {
	if l.began(t) != k-1 || l.stays() || l.group.session() != 0 || len(l.answers()) == 0 {
		return false
	}
	for _, c := range l.group.renews {
		if c.Outcome() == Unknown && c.Sent < t.epochs[k].before {
			return false
		}
	}
	for _, c := range l.answers() {
		g := grant(c)
		if l.mayBeAnsweredIn(t, k-1, c) && g.ExpiresAt.Add(g.Grace).After(t.epochs[k].ended) {
			return false
		}
	}
	return true
}

// carriedOver checks what an epoch promises: it began when the one before was over, its tokens are far greater, no
// lease that was over lives again, and no grant is claimed that was unclaimed when it began.
func (x *examination) carriedOver(c *Check) {
	if len(x.epochs) == 1 {
		return
	}
	for k := 1; k < len(x.epochs); k++ {
		x.epochsFollow(k, c)
	}
	x.tokensJump(c)
	for _, t := range x.locks {
		for _, l := range t.leases {
			if l.granted == nil || l.group == nil {
				continue
			}
			l.startsInItsEpoch(t, c)
			for k := l.began(t) + 1; k < len(x.epochs); k++ {
				l.livesAgain(t, k, c)
			}
		}
	}
}

// epochsFollow checks that no call took effect in the epoch before that was sent after an answer of this one.
func (x *examination) epochsFollow(k int, c *Check) {
	c.Examined++
	e := x.epochs[k]
	if e.after <= e.before {
		return
	}
	for _, t := range x.locks {
		for i := range t.events {
			if late := &t.events[i]; x.epochs.of(late) < k && t.notBefore(late) == e.after {
				c.violated(t, fmt.Sprintf("A call that was sent at %s has this event, but a later epoch had answered at %s.",
					sinceStart(e.after), sinceStart(e.before)), nil, late)
				return
			}
		}
	}
}

// notBefore returns the time before which the event did not happen.
func (t *lockHistory) notBefore(e *lock.Event) (from time.Duration) {
	for _, l := range t.leases {
		switch e {
		case l.granted:
			from, _ = t.grantBounds(l)
		case l.ended:
			from, _ = t.endBounds(l)
		}
	}
	return from
}

// tokensJump checks that the tokens of each epoch are far greater than those before, unless it began with the move of a
// group, which loses nothing. A reader that joins others has
// theirs.
func (x *examination) tokensJump(c *Check) {
	greatest := make([]lock.Token, len(x.epochs))
	for _, e := range x.Events {
		k := x.epochs.of(&e)
		greatest[k] = max(greatest[k], e.Token)
	}
	for _, t := range x.locks {
		for i := range t.events {
			e := &t.events[i]
			k := x.epochs.of(e)
			if e.Kind != lock.Granted || k == 0 {
				continue
			}
			if before := slices.Max(greatest[:k]); e.Token > before && e.Token-before < lock.TokenJump && !x.inCells {
				c.violated(t, fmt.Sprintf("%q was granted the lock with token %d in a new epoch, too little above token %d: others may have been lost.",
					e.Holder, e.Token, before), nil, e)
				return
			}
		}
	}
}

// startsInItsEpoch checks that the lease did not start in an epoch after that of its grant, because it was claimed
// late. A lease that an epoch has carried over started before it.
func (l *lease) startsInItsEpoch(t *lockHistory, c *Check) {
	k := l.began(t)
	for _, call := range l.answers() {
		first, last := t.epochs.ofAnswer(l, call)
		if last == k {
			continue
		}
		c.Examined++
		at := grant(call).AcquiredAt
		ended := t.epochs[k+1].endedBy
		started := first == k && !at.Before(l.granted.At) && (ended.IsZero() || !at.After(ended))
		for _, e := range t.epochs[max(first, k+1) : last+1] {
			started = started || !at.After(e.by)
		}
		if !started {
			c.violated(t, fmt.Sprintf("%q claimed token %d at %s, after a new epoch had begun, at %s: an unclaimed grant returns to the queue then.",
				l.holder, l.token, clock(at), clock(t.epochs[last].by)), []*Call{call}, l.granted, l.ended)
			return
		}
	}
}

// livesAgain checks that a lease that was over when the epoch began was not used in it.
func (l *lease) livesAgain(t *lockHistory, k int, c *Check) {
	if !l.isOver(t, k) {
		return
	}
	c.Examined++
	again := func(call *Call) {
		c.violated(t, fmt.Sprintf("The lease of %q with token %d was over at %s, when an epoch ended, but was used in the next one.", l.holder, l.token,
			clock(t.epochs[k].ended)), []*Call{l.firstAnswer(), call}, l.granted, l.ended)
	}
	for _, call := range l.answers() {
		if first, _ := t.epochs.ofAnswer(l, call); first >= k {
			again(call)
			return
		}
	}
	for _, call := range t.calls {
		if first, _ := t.epochs.ofCall(call); first < k {
			continue
		}
		read, isRead := call.lockRead()
		v, isVerification := call.Response.(lock.Verification)
		if isRead && l.shownIn(read) ||
			isVerification && l.mode == lock.Exclusive && v.Token == l.token && v.Status == lock.Current {
			again(call)
			return
		}
	}
}
