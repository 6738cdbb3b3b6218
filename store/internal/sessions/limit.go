package sessions

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// countFor is how long a count is used. What other replicas have granted since is missing in it.
	countFor = 10 * time.Second
	// recountAfter is the least time between two counts of a session. To count a hundred thousand leases takes some
	// hundredths of a second.
	recountAfter = time.Second
	// maxCounts is how many counts are kept.
	maxCounts = 10_000
)

// A limiter keeps sessions from having too many leases and places. It counts the grants of this replica and ignores
// releases. When that count exceeds the limit or is too old, it counts in the database. It may miss leases that are
// granted during that count, so a session may exceed the limit by their number.
type limiter struct {
	mu     sync.Mutex
	counts map[lock.SessionRef]counted
}

// A counted is the number of leases and places that a session has, or a greater one.
type counted struct {
	n  int
	at time.Time // when it was counted in the database
}

// admit adds n leases to the session. enough is false if that seems to be too many, or is not known; then it must be
// counted, unless full says that this has just been done.
func (l *limiter) admit(ref lock.SessionRef, n, limit int, now time.Time) (enough, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.counts[ref]
	switch {
	case !known || now.Sub(c.at) > countFor:
		return false, false
	case c.n+n > limit:
		return false, now.Sub(c.at) < recountAfter
	}
	c.n += n
	l.counts[ref] = c
	return true, false
}

// set notes what was counted.
func (l *limiter) set(ref lock.SessionRef, n int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil || len(l.counts) >= maxCounts {
		l.counts = make(map[lock.SessionRef]counted)
	}
	l.counts[ref] = counted{n, now}
}

// IsFull reports whether the session has so many leases and places that it gets no more than n others. Otherwise it
// counts these. The error is one of package lock.
func (k *Keeper) IsFull(ctx context.Context, ref lock.SessionRef, n, limit int) (bool, error) {
	now := time.Now()
	enough, full := k.limits.admit(ref, n, limit, now)
	if enough || full {
		return full, nil
	}
	counts := make(row.SessionCounts)
	err := k.db.First(ctx, func(ctx context.Context) error {
		b := &pgx.Batch{}
		counts.Queue(b, k.db.Schema, ref)
		return k.db.Rest.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return false, err
	}
	c := counts[ref]
	k.limits.set(ref, c.Leases+c.Places, now)
	enough, _ = k.limits.admit(ref, n, limit, now)
	return !enough, nil
}
