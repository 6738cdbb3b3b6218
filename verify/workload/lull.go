package workload

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
	l := r.lull.Load()
	if l == nil || !now.Before(l.ends) {
		return lull{}, false
	}
	return *l, true
}

// beginLulls begins a lull whenever Lulls has a value, until the run is over.
func (r *run) beginLulls() {
	for n := 1; ; n++ {
		select {
		case <-r.Lulls:
			r.lull.Store(&lull{n, time.Now().Add(lullLasts)})
		case <-r.over.Done():
			return
		}
	}
}

// joinLull tries to acquire the lock of the lull until that is over, if there is one. The
// client that is granted the lock holds it until then.
func (c *client) joinLull() {
	now, on := c.lullAt(time.Now())
	if !on || c.inLull {
		return
	}
	c.inLull = true
	defer func() { c.inLull = false }()
	l := lease{acquire: lock.Acquire{
		Name: fmt.Sprintf("%s:lull.%d", c.Prefix, now.number), LeaseID: lock.LeaseID(uuid.New()),
		Holder: fmt.Sprintf("%s c%d lull %d", c.Prefix, c.number, now.number), Mode: lock.Exclusive, TTL: c.TTL * 3 / 2,
	}}
	for n := c.number; c.over.Err() == nil && time.Now().Before(now.ends); n++ {
		if err := c.sendAcquire(&l, n, never); err == nil {
			c.sleep(time.Until(now.ends))
			_ = c.release(l, n) // the answer is recorded; if it is lost the lease ends by its TTL
			return
		}
		c.sleep(time.Duration(4+n%8) * time.Millisecond)
	}
}
