package lock

import "strings"

// A Scope says which locks a [Freeze] or a [Rule] covers: the lock of that name, or all locks whose names begin with
// it if it ends with a colon.
type Scope string

// CheckScope returns an ErrInvalid error unless the scope is a valid lock name; one that ends with a colon is.
func CheckScope(s Scope) error { return CheckNameOf("scope", string(s)) }

// IsPrefix reports whether the scope is a prefix of names.
func (s Scope) IsPrefix() bool { return strings.HasSuffix(string(s), ":") }

// Covers reports whether the scope has the lock.
func (s Scope) Covers(name string) bool {
	return name == string(s) || s.IsPrefix() && strings.HasPrefix(name, string(s))
}

// eachScope calls do with each scope that covers the lock, the longest first, until do returns false.
func eachScope(name string, do func(Scope) bool) {
	if !do(Scope(name)) {
		return
	}
	for i := len(name) - 2; i >= 0; i-- {
		if name[i] == ':' && !do(Scope(name[:i+1])) {
			return
		}
	}
}
