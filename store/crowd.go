package store

import "sync"

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

// note hears what was decided.
func (c *crowd) note(outcomes []outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range outcomes {
		for _, s := range o.Locks {
			if crowded(s) {
				if c.names == nil {
					c.names = make(map[string]bool)
				}
				c.names[s.Name] = true
			} else if len(c.names) > 0 {
				delete(c.names, s.Name)
			}
		}
	}
}
