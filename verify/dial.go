package verify

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// dialSpan is for how long the database's clock and the recorder's are taken to keep
// their distance.
const dialSpan = 30 * time.Second

// A dial tells the database's clock by the recorder's. An answer that carries the
// instant of its decision bounds the distance of the two: that instant was before the
// answer and, unless a lock was granted, which may be decided as of a moment before, after the
// sending. Where bounds contradict one another, since a clock was set, nothing is known.
type dial struct {
	start time.Time
	most  map[int]time.Duration // how far the database's clock was ahead at most, in each span
	least map[int]time.Duration
}

func (h History) dial() dial {
	d := dial{start: h.Start, most: map[int]time.Duration{}, least: map[int]time.Duration{}}
	for _, c := range h.Calls {
		if at, ok := c.instant(); ok {
			d.note(c, at)
		}
	}
	return d
}

// instant returns when the call was decided, if its answer tells.
func (c Call) instant() (time.Time, bool) {
	switch got := c.Got.(type) {
	case lock.Lock:
		return got.AsOf, true
	case lock.Verification:
		return got.CheckedAt, true
	case lock.Grant:
		a, ok := c.Asked.(lock.Acquire)
		return got.AcquiredAt, ok && !got.Replayed && a.Wait == 0
	}
	return time.Time{}, false
}

func (d dial) note(c Call, at time.Time) {
	ahead := at.Sub(d.start)
	span := int(c.Answered / dialSpan)
	if least, ok := d.least[span]; !ok || ahead-c.Answered > least {
		d.least[span] = ahead - c.Answered
	}
	if c.Verb == Acquire {
		return
	}
	if most, ok := d.most[span]; !ok || ahead-c.Sent < most {
		d.most[span] = ahead - c.Sent
	}
}

// latest returns what the database's clock showed at most, false if that is not known.
func (d dial) latest(at time.Duration) (time.Time, bool) {
	span := int(at / dialSpan)
	most, ok := d.most[span]
	if !ok || d.least[span] > most+time.Millisecond {
		return time.Time{}, false
	}
	return d.start.Add(at + max(most, d.least[span])), true
}
