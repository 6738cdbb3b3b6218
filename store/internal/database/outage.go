package database

import (
	"sync/atomic"
	"time"
)

// assumeAlive is for how long after an outage other replicas count as alive. It is enough for a few heartbeats.
const assumeAlive = 3 * time.Second

// An Outage knows when the database was last unreachable. The zero Outage is ready for use.
type Outage struct{ last atomic.Pointer[time.Time] }

// Note records that the database is unreachable now.
func (o *Outage) Note() {
	now := time.Now()
	o.last.Store(&now)
}

// AssumeAlive returns for how long from now on replicas without a recent heartbeat count as alive, since they could not
// send one. It is zero unless the database was unreachable shortly before.
func (o *Outage) AssumeAlive() time.Duration {
	last := o.last.Load()
	if last == nil {
		return 0
	}
	return max(assumeAlive-time.Since(*last), 0)
}
