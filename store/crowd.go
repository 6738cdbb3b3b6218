package store

import (
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// A crowd knows, as well as this replica can, which locks have more than an
// anchor: leases side by side, or waiters. A batch reads what is beside those in
// its first round trip; what the crowd does not know costs it another.
type crowd struct {
	mu    sync.Mutex
	names map[string]bool
}

// of returns those of the names that are crowded.
func (c *crowd) of(names []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) == 0 {
		return nil
	}
	var of []string
	for _, name := range names {
		if c.names[name] {
			of = append(of, name)
		}
	}
	return of
}

// note hears how locks are now.
func (c *crowd) note(locks map[string]lock.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range locks {
		if crowded(s) {
			if c.names == nil {
				c.names = make(map[string]bool)
			}
			c.names[name] = true
		} else if len(c.names) > 0 {
			delete(c.names, name)
		}
	}
}
