package policy

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

var sqlLeasesOfKey = database.Statement(files, "leases_of_key")

const (
	// countFor is how long a count is used. What other replicas have granted since is missing in it.
	countFor = 10 * time.Second
	// fullFor is for how long a key that has too many leases is refused without another count.
	fullFor = time.Second
	// maxCounts is how many counts are kept.
	maxCounts = 10_000
)

// A limiter counts the leases of API keys, for the MaxLeases of rules. It adds the grants of this replica to what it has
// counted in the database, and ignores ends. When that exceeds the limit, it counts again at once: a key acquires and
// releases all the time. The limiter of sessions waits a second before that, since it has a thousand times as much to count.
type limiter struct {
	mu     sync.Mutex
	counts map[limited]counted
}

// A limited is an API key in the locks of a rule.
type limited struct {
	scope lock.Scope
	key   string
}

// A counted is how many leases a key had at an instant, and how many it may have since.
type counted struct {
	n, since int
	at       time.Time
}

// FullFor returns the rule of one of the locks whose MaxLeases the API key has reached, so that it gets no lease more; nil
// if it has reached none. The leases that it asks for are counted.
func (c *Catalog) FullFor(ctx context.Context, key string, locks []lock.Member) (*lock.Rule, error) {
	now := c.Newest()
	if key == "" || len(now.Rules) == 0 {
		return nil, nil
	}
	for _, m := range locks {
		r := now.RuleOf(m.Name)
		if r == nil || r.MaxLeases == 0 {
			continue
		}
		if full, err := c.isFull(ctx, r, key); full || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// isFull reports whether the key has as many leases in the locks of the rule as it may have. Otherwise it counts one
// more.
func (c *Catalog) isFull(ctx context.Context, r *lock.Rule, key string) (bool, error) {
	of, now := limited{r.Scope, key}, time.Now()
	if enough, full := c.limits.admit(of, r.MaxLeases, now); enough || full {
		return full, nil
	}
	n := 0
	first, end := rangeOf(r.Scope)
	err := c.db.First(ctx, func(ctx context.Context) error {
		return c.db.Rest.QueryRow(ctx, sqlLeasesOfKey.In(c.db.Schema), first, end, key).Scan(&n)
	})
	if err != nil {
		return false, err
	}
	c.limits.set(of, n, now)
	_, full := c.limits.admit(of, r.MaxLeases, now)
	return full, nil
}

// admit counts a lease more, unless that seems to be too many, or is not known. full is true if that was counted just
// now.
func (l *limiter) admit(of limited, limit int, now time.Time) (enough, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.counts[of]
	switch {
	case !known || now.Sub(c.at) > countFor:
		return false, false
	case c.n >= limit:
		return false, now.Sub(c.at) < fullFor
	case c.n+c.since >= limit:
		return false, false
	}
	c.since++
	l.counts[of] = c
	return true, false
}

// set notes what was counted.
func (l *limiter) set(of limited, n int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil || len(l.counts) >= maxCounts {
		l.counts = make(map[limited]counted)
	}
	l.counts[of] = counted{n: n, at: now}
}
