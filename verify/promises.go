package verify

import (
	"cmp"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// answeredEnd returns the latest end, grace included, that an answer promised on the clock of the epoch, and that
// answer.
func (l *lease) answeredEnd(t *lockHistory, k int) (end time.Time, by *Call) {
	for _, c := range l.answers() {
		if g := grant(c); l.answeredIn(t, k, c) && g.ExpiresAt.Add(g.Grace).After(end) {
			end, by = g.ExpiresAt.Add(g.Grace), c
		}
	}
	return end, by
}

// promisedEnd is answeredEnd with the promise of an epoch: a lease that was not over when it began has its whole TTL
// from then on. The answer is nil if no end is known. A session in several cells ends at the earliest of its ends there, so
// a move promises its leases nothing.
func (l *lease) promisedEnd(t *lockHistory, k int) (end time.Time, by *Call) {
	end, by = l.answeredEnd(t, k)
	if k <= l.began(t) || t.epochs[k].from.IsZero() || t.inCells && l.group != nil && l.group.session() != 0 {
		return end, by
	}
	ttl, grace := l.leastTTL(t)
	if again := t.epochs[k].from.Add(ttl + grace); ttl > 0 && again.After(end) {
		if before := l.outlives(t, k); before != nil {
			end, by = again, cmp.Or(by, before)
		}
	}
	return end, by
}

// outlives returns an answer which shows that the lease was not over when the epoch began, nil if it may have been.
func (l *lease) outlives(t *lockHistory, k int) *Call {
	end, by := l.promisedEnd(t, k-1)
	for _, c := range l.answers() {
		if g := grant(c); l.mayBeAnsweredIn(t, k-1, c) && g.ExpiresAt.Add(g.Grace).After(end) {
			end, by = g.ExpiresAt.Add(g.Grace), c
		}
	}
	if e := t.epochs[k]; e.endedBy.IsZero() || !end.After(e.endedBy) {
		return nil
	}
	return by
}

// leastTTL returns the shortest TTL with which the lease may be extended when an epoch begins, and its grace. A zero
// TTL is unknown.
func (l *lease) leastTTL(t *lockHistory) (ttl, grace time.Duration) {
	for _, c := range l.answers() {
		g := grant(c)
		if ttl == 0 || g.TTL < ttl {
			ttl = g.TTL
		}
		grace = g.Grace
	}
	if l.group == nil {
		return ttl, grace
	}
	if ref := l.group.session(); ref != 0 {
		a, _ := l.group.acquire()
		s := t.sessions[ref]
		if s == nil || len(s.extended) == 0 || a.MaxHold > 0 { // the hold has no pause
			return 0, grace
		}
		return s.leastTTL(), grace
	}
	for _, c := range l.group.renews {
		switch r := c.Request.(lock.Renew); {
		case c.Outcome() != Unknown:
		case t.ruled: // which may have shortened it
			return 0, grace
		case r.TTL > 0:
			ttl = min(ttl, r.TTL)
		}
	}
	return ttl, grace
}
