package engine

import (
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// MaxRenewalLinger bounds Options.RenewalLinger.
	MaxRenewalLinger = 20 * time.Millisecond
	// lingerTTL is how much of a lease must be left, and half of its TTL, for its renewal to linger.
	lingerTTL = time.Second
	// companyCredit is how many renewals in a row may linger in vain, before pauses begin.
	companyCredit = 4
	// minLingerPause and maxLingerPause bound how many renewals do not linger after one that did so in vain.
	minLingerPause, maxLingerPause = 31, 1023
)

// A company says whether a renewal that lingers is likely to find others. A client alone must not be slowed down:
// after some renewals that lingered in vain only one in 32 does, then one in 64, and so on to one in 1024.
type company struct {
	credit int // how many more may linger in vain
	pause  int // how many do not linger after each that does
	since  int // how many have not
}

// expected reports whether a renewal that comes should linger.
func (c *company) expected() bool {
	if c.credit > 0 || c.since >= c.pause {
		return true
	}
	c.since++
	return false
}

// found notes whether a renewal that lingered found company.
func (c *company) found(others bool) {
	switch c.since = 0; {
	case others:
		*c = company{credit: companyCredit}
	case c.credit > 0:
		c.credit--
	default:
		c.pause = min(max(2*c.pause+1, minLingerPause), maxLingerPause)
	}
}

// patient reports whether the command renews a lease of which so much is left that the renewal may linger.
func (c *cache) patient(cmd lock.Command) bool {
	renew, renews := cmd.(lock.Renew)
	if !renews {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.get(renew.Name)
	now := c.clock.at(time.Now())
	return ok && !c.clock.shown.IsZero() && slices.ContainsFunc(r.Record.Leases, func(l lock.Lease) bool {
		return l.ID == renew.LeaseID && l.ExpiresAt.Sub(now) > max(lingerTTL, l.TTL/2)
	})
}
