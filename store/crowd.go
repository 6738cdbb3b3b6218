package store

import (
	"slices"
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// maxCrowd is how many crowded locks a replica knows at most. One that another has emptied
// meanwhile stays known here until it is decided on here again, so some are forgotten.
const maxCrowd = 20_000

// A crowd knows, as well as this replica can, which locks have more than an
// anchor: leases side by side, or waiters. A batch reads what is beside those in
// its first round trip; what the crowd does not know costs it another.
//
// Of locks at which nobody waits with another replica it remembers all of that. Whoever
// changes a lock writes its anchor, so one that has not been written since is as remembered.
type crowd struct {
	mu    sync.Mutex
	names map[string]memory
}

// A memory is a crowded lock as a transaction left it.
type memory struct {
	state   lock.Record
	version uint32 // of the anchor: the xid of who wrote it
	epoch   int64  // of the database, whose beginning rewrites what is beside anchors
	mine    bool   // all that is to be read is in state; else that is empty
}

// of returns those of the names that are crowded and must be read, and what is
// remembered of others.
func (c *crowd) of(names []string) (unknown []string, remembered map[string]memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) == 0 {
		return nil, nil
	}
	remembered = make(map[string]memory)
	for _, name := range names {
		switch m, crowded := c.names[name]; {
		case crowded && m.mine:
			remembered[name] = m
		case crowded:
			unknown = append(unknown, name)
		}
	}
	return unknown, remembered
}

// has reports whether the lock is crowded, as far as is known.
func (c *crowd) has(name string) bool {
	crowded, _ := c.knows(name)
	return crowded
}

// knows reports whether the lock is crowded, and whether calls wait for it with this replica alone, as far as is known.
func (c *crowd) knows(name string) (crowded, waitedFor bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, crowded := c.names[name]
	return crowded, m.mine && len(m.state.Queue) > 0
}

// note hears how a transaction left the locks.
func (c *crowd) note(t *tx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range t.locks {
		c.put(s, t.anchor(name).version, t.epoch.number, t.self)
	}
}

// noteSwap hears how a swap left the locks.
func (c *crowd) noteSwap(w *swap) {
	if !w.crowded {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range w.all {
		if one.done {
			c.put(one.after, one.left.version, w.recents.epoch.number, w.self)
		}
	}
}

// put hears how a lock was left. The caller holds mu.
func (c *crowd) put(s lock.Record, version uint32, epoch int64, self lock.Replica) {
	if !crowded(s) {
		delete(c.names, s.Name)
		return
	}
	m := memory{version: version, epoch: epoch, mine: !slices.ContainsFunc(s.Queue, func(w *lock.Waiter) bool {
		return w.Replica != 0 && w.Replica != self // it lives for as long as the table says
	})}
	if m.mine {
		m.state = s
	}
	if c.names == nil {
		c.names = make(map[string]memory)
	}
	if _, known := c.names[s.Name]; !known && len(c.names) >= maxCrowd {
		c.forgetOne()
	}
	c.names[s.Name] = m
}

// forgetOne makes room, no matter which lock it is. The caller holds mu.
func (c *crowd) forgetOne() {
	for name := range c.names {
		delete(c.names, name)
		return
	}
}
