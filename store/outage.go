package store

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// lenient is for how long after an outage of the database other replicas are
// taken to live: they could not say so. It is enough for a few beats.
const lenient = 3 * time.Second

// An outage knows when the database was last found to be away.
type outage struct{ last atomic.Pointer[time.Time] }

func (o *outage) note() {
	now := time.Now()
	o.last.Store(&now)
}

// lenience returns for how long from now on replicas are taken to live that have
// not said so.
func (o *outage) lenience() time.Duration {
	last := o.last.Load()
	if last == nil {
		return 0
	}
	return max(lenient-time.Since(*last), 0)
}

// A trouble is something that may go wrong again and again. It is told once, and
// then not until it has gone well.
type trouble struct{ told bool }

// troubled logs the error, if there is one: at debug level if it was told before,
// and not at all when the store closes.
func (s *Store) troubled(t *trouble, task string, err error) {
	level := slog.LevelWarn
	if t.told {
		level = slog.LevelDebug
	}
	if t.told = err != nil; err != nil && s.ctx.Err() == nil {
		s.log.Log(s.ctx, level, "background task failed; retrying", "task", task, "error", err)
	}
}
