package verify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A tokenStep is a grant, at the time when its token was answered or its lease was requested.
type tokenStep struct {
	*lease
	t    *lockHistory
	at   time.Duration
	call *Call
}

// tokenOrder checks that a grant that was requested after another one was answered has the greater token, at whatever
// locks. Of all groups in several cells, it checks those that one cell has granted.
// A reader that joins others has their token, so it proves nothing of its own request. After a restore no reader
// does: the grant of one before it may be unknown.
func (x *examination) tokenOrder(c *Check) {
	var answers, requests []tokenStep
	for _, t := range x.locks {
		readers := t.firstReaders()
		for _, l := range t.leases {
			if first := l.firstAnswer(); first != nil {
				answers = append(answers, tokenStep{l, t, first.Answered, first})
			}
			if first := l.group.firstRequest(); first != nil && (l.mode != lock.Shared || readers[l] && !x.options.Restored) {
				requests = append(requests, tokenStep{l, t, first.Sent, first})
			}
		}
	}
	byTime := func(a, b tokenStep) int { return cmp.Compare(a.at, b.at) }
	slices.SortStableFunc(answers, byTime)
	slices.SortStableFunc(requests, byTime)
	key := func(tokenStep) int { return 0 }
	if x.options.Cells && !x.inCells {
		key = func(s tokenStep) int { return cellOfToken(s.token) }
	}
	tokensGrow(answers, requests, c, key)
}

// tokensGrow checks the order of the tokens with the same key. The steps are ordered by time.
func tokensGrow(answers, requests []tokenStep, c *Check, key func(tokenStep) int) {
	greatest := map[int]tokenStep{}
	for _, r := range requests {
		for ; len(answers) > 0 && answers[0].at < r.at; answers = answers[1:] {
			if a := answers[0]; greatest[key(a)].lease == nil || a.token > greatest[key(a)].token {
				greatest[key(a)] = a
			}
		}
		before := greatest[key(r)]
		if c.Examined++; before.lease != nil && before.group != r.group && r.token <= before.token {
			c.violated(r.t, fmt.Sprintf("%q was granted the lock with token %d, requested after %q had been granted %s with token %d.",
				r.holder, r.token, before.holder, before.t.name, before.token),
				[]*Call{before.call, r.call}, before.granted, r.granted)
		}
	}
}

// firstRequest returns the acquire that was sent first, nil if there is none.
func (r *callGroup) firstRequest() *Call {
	if r == nil || len(r.acquires) == 0 {
		return nil
	}
	return slices.MinFunc(r.acquires, func(a, b *Call) int { return cmp.Compare(a.Sent, b.Sent) })
}

// firstReaders returns the shared leases of the lock whose token was new. Of readers that were granted the lock at one
// instant it is not known which was the first.
func (t *lockHistory) firstReaders() map[*lease]bool {
	first, tied := map[lock.Token]*lease{}, map[lock.Token]bool{}
	for _, l := range t.leases {
		if l.mode != lock.Shared {
			continue
		}
		switch o := first[l.token]; {
		case o == nil || l.acquiredAt().Before(o.acquiredAt()):
			first[l.token], tied[l.token] = l, false
		case l.acquiredAt().Equal(o.acquiredAt()):
			tied[l.token] = true
		}
	}
	all := map[*lease]bool{}
	for token, l := range first {
		all[l] = !tied[token]
	}
	return all
}

// acquiredAt returns when the lease was granted, on the database's clock.
func (l *lease) acquiredAt() time.Time {
	if l.granted != nil {
		return l.granted.At
	}
	return grant(l.firstAnswer()).AcquiredAt
}
