package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// maxCached bounds a cache: the leases and waiters in it, each lock counting as one more.
	maxCached = 200_000
	// cachedMetadata is how many bytes of metadata count as one lease more.
	cachedMetadata = 256
)

// A cache contains locks as this worker last read or wrote them, and what else a decision needs. Nothing in it is
// trusted: a swap compares it with the database when it writes, see package row. It may be stale, but each
// entry is one whole version, so a lock is put into it only when its commit is confirmed. All that is in it is of one
// epoch and one start of the server.
//
// When it is full, the older half is dropped. A lock that is used moves to the younger half.
type cache struct {
	mu    sync.Mutex
	conns int64 // Connected of the database when the cache was last emptied
	epoch epoch.Epoch
	clock reading
	young half
	old   half
}

// A half is half of a cache.
type half struct {
	rows   map[string]*row.Row
	weight int
}

// get returns the lock. The caller holds mu.
func (c *cache) get(name string) (*row.Row, bool) {
	if r, ok := c.young.rows[name]; ok {
		return r, true
	}
	r, ok := c.old.rows[name]
	if ok {
		c.put(r)
	}
	return r, ok
}

// put adds the lock, or replaces it. The caller holds mu.
func (c *cache) put(r *row.Row) {
	name := r.Record.Name
	if c.young.weight >= maxCached/2 {
		c.old, c.young = c.young, half{}
	}
	if c.young.rows == nil {
		c.young.rows = make(map[string]*row.Row)
	}
	if before, ok := c.young.rows[name]; ok {
		c.young.weight -= weight(&before.Record)
	} else {
		c.old.drop(name)
	}
	c.young.rows[name] = r
	c.young.weight += weight(&r.Record)
}

// drop removes the lock. The caller holds mu.
func (c *cache) drop(name string) {
	c.young.drop(name)
	c.old.drop(name)
}

func (h *half) drop(name string) {
	if r, ok := h.rows[name]; ok {
		h.weight -= weight(&r.Record)
		delete(h.rows, name)
	}
}

// clearIfReconnected empties the cache if a connection was made since it was filled: the server may have lost its newest
// commits, or be another one. made is how many were ever made.
func (c *cache) clearIfReconnected(made int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made != c.conns {
		c.clear()
		c.conns = made
	}
}

func (c *cache) clear() {
	c.young, c.old, c.epoch, c.clock = half{}, half{}, epoch.Epoch{}, reading{}
}

// isOf reports whether the cache is of the epoch, and of the start of the server in which it was read. Nothing else
// may be put into it. The caller holds mu.
func (c *cache) isOf(e epoch.Epoch) bool {
	return e.Number == c.epoch.Number && e.Started.Equal(c.epoch.Started)
}

// enter notes the epoch that was read, and empties the cache if it is another one, or about another server. The caller
// holds mu.
func (c *cache) enter(e epoch.Epoch, clock reading) {
	if !c.isOf(e) {
		c.clear()
	}
	c.epoch, c.clock = e, c.clock.morePrecise(clock)
}

// queued reports whether calls wait for the lock, as far as the cache knows, and whether an acquire of this replica
// with these traits may linger behind them. It may linger if it waits for at least lingerWait and has neither lease nor
// place yet, the first waiter of this replica will be granted the lock within joinLinger, and the replica has a share
// of the queue, see lingerShare. The time between the joins of two waiters is the estimate of the time between their
// grants. A waiter for an intention does not count, since it may be overtaken.
func (c *cache) queued(name string, self lock.Replica, t lock.Traits) (queued, lingers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.get(name)
	if !ok {
		return false, false
	}
	all, own := r.Record.Queue, 0
	isKnown := slices.ContainsFunc(r.Record.Leases, func(l lock.Lease) bool { return l.ID == t.Lease }) ||
		slices.ContainsFunc(all, func(w *lock.Waiter) bool { return w.Lease.ID == t.Lease })
	if isKnown || t.Wait < lingerWait {
		return len(all) > 0, false
	}
	var next *lock.Waiter
	for _, w := range all {
		if w.Attachment == 0 || w.GrantedUnclaimed || w.Lease.Mode.IsIntention() {
			continue
		}
		if next = cmp.Or(next, w); w.Replica != self {
			continue
		}
		if own == 0 && w.JoinedAt.Sub(next.JoinedAt) > joinLinger {
			break
		}
		if own++; own*lingerShare >= len(all) {
			return true, true
		}
	}
	return len(all) > 0, false
}

// weight returns how much of a cache the lock takes.
func weight(r *lock.Record) int {
	n := 1 + len(r.Leases) + len(r.Queue)
	for i := range r.Leases {
		n += len(r.Leases[i].Metadata) / cachedMetadata
	}
	for _, w := range r.Queue {
		n += len(w.Lease.Metadata) / cachedMetadata
	}
	return n
}

// A reading is what the database's clock showed at some instant between after and before, on this process's clock.
type reading struct {
	shown         time.Time
	after, before time.Time
}

// at returns what the database's clock shows at the instant t of this process's clock, or a little less.
func (r reading) at(t time.Time) time.Time {
	return r.shown.Add(max(t.Sub(r.before), 0)).Truncate(time.Microsecond)
}

// earliest returns the instant of this process's clock at which the database's clock showed t, or an earlier one.
func (r reading) earliest(t time.Time) time.Time { return r.after.Add(t.Sub(r.shown)) }

// morePrecise returns the more precise of two readings, with the drift of the clocks since the older one counted.
func (r reading) morePrecise(newer reading) reading {
	const drift = 1000 // one part in so many
	if newer.before.Sub(newer.after) <= r.before.Sub(r.after)+newer.before.Sub(r.before)/drift {
		return newer
	}
	return r
}
