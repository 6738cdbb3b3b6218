package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/lock"
)

// A swap decides from memory, by compare and swap: one statement, which is its own
// transaction, writes the locks that are still as the connection remembers them. What cannot
// be decided so, or has changed since, goes through a transaction that looks.
type swap struct {
	recents *recents
	self    lock.Replica
	now     time.Time // of the database, or a moment before
	all     []*swapping
	crowded bool      // whether there is more to some of them than an anchor and an event
	began   time.Time // on this process's clock, no later than now
	granted int64     // the greatest token

	statement *pgconn.StatementDescription // what is sent, see prepare
	args      [][]byte
}

// A swapping is one lock of a swap, with the calls about it.
type swapping struct {
	calls  []*call
	before recent
	draws  bool // whether a token is drawn, one at most

	decisions []lock.Decision // of the calls; until it is drawn, with no true token
	after     lock.Record
	told      *lock.Event   // the one event of a lock that is not crowded, if there is one
	unused    lock.LeaseRef // of the lease that nobody may have had; zero: nobody can
	done      bool
	left      anchor // as it was left, when it is done
}

const (
	// maxLag is by how much the database's clock may be ahead of a swap's when it begins.
	maxLag = rowTimeout
	// maxCrowdedSwap is how many locks a swap has at most if some are crowded: their
	// events and waiters are looked for one by one.
	maxCrowdedSwap = 16
)

// newSwap decides the calls that can be from memory. It returns nil if that is not
// for most of them: the others cost a transaction anyway.
func newSwap(r *recents, self lock.Replica, calls []*call, at time.Time) *swap {
	if r == nil {
		return nil
	}
	s := &swap{recents: r, self: self, now: r.clock.at(at)}
	for calls := range byLock(calls) {
		if one, ok := s.decide(calls); ok {
			s.all = append(s.all, one)
		}
	}
	if s.crowded = slices.ContainsFunc(s.all, (*swapping).crowded); s.crowded && len(s.all) > maxCrowdedSwap {
		s.all, s.crowded = slices.DeleteFunc(s.all, (*swapping).crowded), false
	}
	if 2*len(s.calls()) < len(calls) || len(s.all) == 0 {
		return nil
	}
	return s
}

// byLock yields the calls about each lock, in the order of names.
func byLock(calls []*call) func(func([]*call) bool) {
	sorted := slices.SortedStableFunc(slices.Values(calls), func(a, b *call) int { return cmp.Compare(nameOf(a), nameOf(b)) })
	return func(yield func([]*call) bool) {
		for len(sorted) > 0 {
			n := 1
			for n < len(sorted) && nameOf(sorted[n]) == nameOf(sorted[0]) {
				n++
			}
			if !yield(sorted[:n:n]) {
				return
			}
			sorted = sorted[n:]
		}
	}
}

// nameOf returns the lock that the call is about.
func nameOf(c *call) string {
	switch cmd := c.Req.(type) {
	case acquireCall:
		return cmd.Name
	case lock.Renew:
		return cmd.Name
	case lock.Release:
		return cmd.Name
	}
	return c.Req.Names()[0]
}

// calls returns those that the swap is about.
func (s *swap) calls() []*call {
	calls := make([]*call, 0, len(s.all))
	for _, one := range s.all {
		calls = append(calls, one.calls...)
	}
	return calls
}

// decide decides the calls about one lock as it is remembered, if they all succeed and the
// lock can be remembered afterwards.
func (s *swap) decide(calls []*call) (*swapping, bool) {
	for _, c := range calls {
		switch c.Req.(type) {
		case acquireCall, lock.Renew, lock.Release:
		default:
			return nil, false
		}
	}
	before, ok := s.recents.get(nameOf(calls[0]))
	if !ok || before.over(s.now) { // what ended a lease is for a transaction to tell
		return nil, false
	}
	one := &swapping{calls: calls, before: before}
	if draws, ok := one.apply(s, undrawn); !ok || draws > 1 || !memorable(one.after, s.self) {
		return nil, false
	}
	if !one.crowded() {
		one.unused = refOf(calls[0])
		if events := one.decisions[0].Events; len(events) > 0 {
			one.told = &events[0]
		}
	}
	return one, true
}

// apply has the calls decide, with that token if one is drawn. It returns how many tokens
// they take, and whether all succeed.
func (one *swapping) apply(s *swap, token lock.Token) (draws int, ok bool) {
	one.after, one.decisions = one.before.state, one.decisions[:0]
	changed := false
	var ended ends // by the calls before: the statement sees no event that it writes itself
	for _, c := range one.calls {
		d := c.Req.Apply(lock.View{
			Now: s.now, Self: s.self, Locks: []lock.Record{one.after}, Ended: ended, GrantsPausedUntil: s.recents.epoch.closedUntil,
			Tokens: func() lock.Token { draws++; return token },
		})
		if d.Err != nil || d.Replayed || s.recents.epoch.covers(longestOf(d)) != nil {
			return draws, false
		}
		if len(one.calls) > 1 {
			ended = ended.with(d.Events)
		}
		one.after, one.decisions, changed = d.Locks[0], append(one.decisions, d), changed || d.Changed
	}
	one.draws = draws > 0
	return draws, changed
}

// crowded is whether there is more to the lock, before or after, than an anchor, or more to
// tell than one event.
func (one *swapping) crowded() bool {
	return len(one.calls) > 1 || len(one.decisions[0].Events) > 1 || !plain(one.before.state) || !plain(one.after)
}

// refOf returns the lease that the call wants and that nobody may have had; zero if there is none.
func refOf(c *call) lock.LeaseRef {
	if a, asks := c.Req.(acquireCall); asks && !a.generatedID {
		return a.Refs()[0]
	}
	return 0
}
