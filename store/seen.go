package store

import (
	"iter"
	"slices"
	"sync"
)

const (
	// maxSeen is how many names a store remembers to have seen; it begins anew then.
	maxSeen = 100_000
	// seldom is how often names never seen are looked for all the same, one time in so many,
	// while most of them have no anchor.
	seldom = 16
)

// seen remembers names that have an anchor, so that a batch makes none for them. One that
// was pruned since costs the batch another try.
type seen struct {
	mu    sync.Mutex
	names map[string]struct{}

	usual  float64 // which part of the names that were looked for, and had not been seen, had an anchor of late
	passed int     // how often such names were not looked for
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

// likely returns those of the names that it is worth looking for, and which of these have not
// been seen.
func (s *seen) likely(names []string) (likely, unseen []string) {
	unseen = s.missing(names)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(unseen) == 0 || s.usual >= 0.5 {
		return names, unseen
	}
	if s.passed++; s.passed%seldom == 0 {
		return names, unseen
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, ok := s.names[name]
		return !ok
	}), nil
}

// learn hears which of the names that had not been seen are among those that were found.
func (s *seen) learn(unseen []string, found map[string]recent) {
	if len(unseen) == 0 {
		return
	}
	there := 0
	for _, name := range unseen {
		if _, ok := found[name]; ok {
			there++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usual += (float64(there)/float64(len(unseen)) - s.usual) / 4
}

// note hears of names whose anchors are there.
func (s *seen) note(names iter.Seq[string]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil || len(s.names) > maxSeen {
		s.names = make(map[string]struct{})
	}
	for name := range names {
		s.names[name] = struct{}{}
	}
}

// forget has all names be taken for unseen.
func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = nil
}
