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
	for _, name := range s.names {
		put(x.names, name, s)
	}
	if len(s.names) == 0 && put(x.prefixes, s.prefix, s) {
		x.lengths[len(s.prefix)]++
	}
}

// remove removes the subscriber, if it is in the index.
func (x *index) remove(s *subscriber) {
	delete(x.all, s)
	for _, name := range s.names {
		drop(x.names, name, s)
	}
	if len(s.names) == 0 && drop(x.prefixes, s.prefix, s) {
		x.lengths[len(s.prefix)]--
	}
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
