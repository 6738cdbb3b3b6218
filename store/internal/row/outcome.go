package row

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// An Outcome is a decision that is committed, or needs no commit.
type Outcome struct {
	lock.Decision
	Began time.Time // on this process's clock; no later than the Decision's Now
	Place int64     // of the call in the queue; zero if it does not wait
}

// Until returns the instant of this process's clock at which the database's clock shows t, or an earlier one.
func (o Outcome) Until(t time.Time) time.Time { return o.Began.Add(t.Sub(o.Now)) }
