package eventlog

import "github.com/paddock-lock/paddock/lock"

// An index finds the subscribers of a name.
type index struct {
	all      set
	names    map[string]set
	prefixes map[string]set
	lengths  [lock.MaxNameLength + 1]int // how many prefixes have each length
}

type set map[*subscriber]struct{}

func newIndex() index {
	return index{all: set{}, names: map[string]set{}, prefixes: map[string]set{}}
}

// add adds the subscriber, which is not in the index.
func (x *index) add(s *subscriber) {
	x.all[s] = struct{}{}
	for _, name := range s.query.Names {
		put(x.names, name, s)
	}
	if s.followsPrefix() && put(x.prefixes, s.query.Prefix, s) {
		x.lengths[len(s.query.Prefix)]++
	}
}

// remove removes the subscriber, if it is in the index.
func (x *index) remove(s *subscriber) {
	delete(x.all, s)
	for _, name := range s.query.Names {
		drop(x.names, name, s)
	}
	if s.followsPrefix() && drop(x.prefixes, s.query.Prefix, s) {
		x.lengths[len(s.query.Prefix)]--
	}
}

// followsPrefix reports whether the subscriber has a prefix, which may be empty, instead of names or sessions.
func (s *subscriber) followsPrefix() bool {
	return len(s.query.Names) == 0 && len(s.query.Sessions) == 0
}

// put reports whether the key is new.
func put(m map[string]set, key string, s *subscriber) bool {
	of, known := m[key]
	if !known {
		of = set{}
		m[key] = of
	}
	of[s] = struct{}{}
	return !known
}

// drop reports whether the key is no longer there.
func drop(m map[string]set, key string, s *subscriber) bool {
	of, known := m[key]
	delete(of, s)
	if known && len(of) == 0 {
		delete(m, key)
		return true
	}
	return false
}

// each calls do for each subscriber of the name. do may remove it.
func (x *index) each(name string, do func(*subscriber)) {
	for s := range x.names[name] {
		do(s)
	}
	for n := range min(len(name), lock.MaxNameLength) + 1 {
		if x.lengths[n] == 0 {
			continue
		}
		for s := range x.prefixes[name[:n]] {
			do(s)
		}
	}
}
