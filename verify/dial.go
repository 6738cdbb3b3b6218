package verify

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// clockSpan is for how long the database's clock and the recorder's are taken to keep
// their distance.
const clockSpan = 30 * time.Second

// A clockBounds tells the database's clock by the recorder's. An answer that carries the
// instant of its decision bounds the distance of the two: that instant was before the
// answer and, unless a lock was granted, which may be decided as of a moment before, after the
// sending. Where bounds contradict one another, since a clock was set, nothing is known.
type clockBounds struct {
	start    time.Time
	maxAhead map[int]time.Duration // how far the database's clock was ahead at most, in each span
	minAhead map[int]time.Duration
}

func (h History) clockBounds() clockBounds {
	d := clockBounds{start: h.Start, maxAhead: map[int]time.Duration{}, minAhead: map[int]time.Duration{}}
	for _, c := range h.Calls {
		if at, ok := c.decidedAt(); ok {
			d.observe(c, at)
		}
	}
	return d
}

// decidedAt returns when the call was decided, if its answer tells.
func (c Call) decidedAt() (time.Time, bool) {
	switch got := c.Response.(type) {
	case lock.Lock:
		return got.AsOf, true
	case lock.Verification:
		return got.CheckedAt, true
	case lock.Grant:
		a, ok := c.Request.(lock.Acquire)
		return got.AcquiredAt, ok && !got.Replayed && a.Wait == 0
	}
	return time.Time{}, false
}

func (d clockBounds) observe(c Call, at time.Time) {
	ahead := at.Sub(d.start)
	span := int(c.Answered / clockSpan)
	if least, ok := d.minAhead[span]; !ok || ahead-c.Answered > least {
		d.minAhead[span] = ahead - c.Answered
	}
	if c.Verb == Acquire {
		return
	}
	if most, ok := d.maxAhead[span]; !ok || ahead-c.Sent < most {
		d.maxAhead[span] = ahead - c.Sent
	}
}

// latest returns what the database's clock showed at most, false if that is not known.
func (d clockBounds) latest(at time.Duration) (time.Time, bool) {
	span := int(at / clockSpan)
	most, ok := d.maxAhead[span]
	if !ok || d.minAhead[span] > most+time.Millisecond {
		return time.Time{}, false
	}
	return d.start.Add(at + max(most, d.minAhead[span])), true
}
