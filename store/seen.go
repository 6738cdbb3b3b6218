package store

import (
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// maxSeen is how many names a store remembers to have seen; it begins anew then.
const maxSeen = 100_000

// seen remembers names that have an anchor, so that a batch makes none for them. One that
// was pruned since costs the batch another try.
type seen struct {
	mu    sync.Mutex
	names map[string]struct{}
}

// missing returns those of the names that may have no anchor.
func (s *seen) missing(names []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []string
	for _, name := range names {
		if _, ok := s.names[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// note hears of locks whose anchors are there.
func (s *seen) note(locks map[string]lock.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil || len(s.names) > maxSeen {
		s.names = make(map[string]struct{})
	}
	for name := range locks {
		s.names[name] = struct{}{}
	}
}

// forget has all names be taken for unseen.
func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = nil
}
