package load

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// lullLasts is how long a lull is.
const lullLasts = 400 * time.Millisecond

// A lull is a time in which the clients do nothing but try to acquire one lock that is
// held. Refused tries draw ids and tokens in transactions that are rolled back: nothing
// is flushed, which is when a crash of the database can take back what readers saw.
type lull struct {
	number int
	ends   time.Time
}

// lullAt returns the lull at that instant, false if there is none.
func (r *run) lullAt(now time.Time) (lull, bool) {
	if r.LullEvery <= 0 {
		return lull{}, false
	}
	n := int(now.Sub(r.began) / r.LullEvery)
	ends := r.began.Add(time.Duration(n+1) * r.LullEvery)
	return lull{n, ends}, !now.Before(ends.Add(-lullLasts))
}

// announceLulls calls Lulled when a lull has begun, until the run is over.
func (r *run) announceLulls() {
	if r.LullEvery <= 0 || r.Lulled == nil {
		return
	}
	next := time.NewTimer(r.LullEvery - lullLasts)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			next.Reset(r.LullEvery)
			r.Lulled()
		case <-r.over.Done():
			return
		}
	}
}

// bide tries to acquire the lock of the lull until that is over, if there is one. The
// client that is granted the lock holds it until then.
func (c *client) bide() {
	now, on := c.lullAt(time.Now())
	if !on || c.biding {
		return
	}
	c.biding = true
	defer func() { c.biding = false }()
	l := lease{ask: lock.Acquire{
		Name: fmt.Sprintf("%s:lull.%d", c.Prefix, now.number), LeaseID: lock.LeaseID(uuid.New()),
		Holder: fmt.Sprintf("%s c%d lull %d", c.Prefix, c.number, now.number), Mode: lock.Exclusive, TTL: 4 * lullLasts,
	}}
	for n := c.number; c.over.Err() == nil && time.Now().Before(now.ends); n++ {
		if err := c.seek(&l, n, stays); err == nil {
			c.sleep(time.Until(now.ends))
			_ = c.release(l, n) // the answer is recorded; if it is lost the lease ends by its TTL
			return
		}
		c.sleep(time.Duration(4+n%8) * time.Millisecond)
	}
}
