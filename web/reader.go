package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// A reader is the user who views the page, identified by an API key. The zero reader is a user of a service without
// keys, and may do everything.
type reader struct {
	key      access.Key
	SignedIn bool
}

func readerOf(r *http.Request) reader {
	key, ok := access.KeyFrom(r.Context())
	return reader{key: key, SignedIn: ok}
}

// Name returns the name of the key.
func (r reader) Name() string { return r.key.Name }

// Role returns the role of the key.
func (r reader) Role() string { return r.key.Role.String() }

// Prefixes returns the prefixes of the key, none if it is for all names.
func (r reader) Prefixes() []string { return r.key.Prefixes }

// mayRevoke reports whether the page offers to revoke. The service itself decides.
func (r reader) mayRevoke() bool { return !r.SignedIn || r.key.Role >= access.Admin }

// mayRevokeSessions reports whether the page offers to revoke sessions, which may have leases of any name.
func (r reader) mayRevokeSessions() bool { return r.mayRevoke() && r.coversAll("") }

// MayListSessions reports whether the page links to the list of sessions.
func (r reader) MayListSessions() bool { return r.coversAll("") }

// MaySeeService reports whether the page links to that of the service.
func (r reader) MaySeeService() bool { return r.mayRevoke() && r.coversAll("") }

// mayChangeTrees reports whether the page offers to declare trees.
func (r reader) mayChangeTrees() bool { return r.mayRevoke() }

// mayChangeTree reports whether the page offers to remove the tree.
func (r reader) mayChangeTree(root string) bool { return r.mayChangeTrees() && r.covers(root) }

// mayFreeze reports whether the page offers to freeze locks, and to end freezes of scopes that the key covers.
func (r reader) mayFreeze() bool { return r.mayRevoke() }

// coversScope reports whether the reader may see all locks of the scope.
func (r reader) coversScope(s lock.Scope) bool {
	if s.IsPrefix() {
		return r.coversAll(string(s))
	}
	return r.covers(string(s))
}

// covers reports whether the reader may see the name.
func (r reader) covers(name string) bool { return !r.SignedIn || r.key.Covers(name) }

// partsOf returns the highest locks in the tree that the reader may see: its root, or those of the key's prefixes that
// are below it.
func (r reader) partsOf(root string) (tops []string) {
	if r.covers(root) {
		return []string{root}
	}
	for _, p := range slices.SortedFunc(slices.Values(r.key.Prefixes), compareInTree) {
		inLast := len(tops) > 0 && strings.HasPrefix(p+":", tops[len(tops)-1]+":")
		if strings.HasPrefix(p, root+":") && lock.CheckName(p) == nil && !inLast {
			tops = append(tops, p)
		}
	}
	return tops
}

// coversAll reports whether the reader may see all names with the prefix.
func (r reader) coversAll(prefix string) bool { return !r.SignedIn || r.key.CoversAll(prefix) }

// within narrows the prefix to the first part that the key covers. It returns a prefix that the key does not cover
// unchanged, so that the service refuses it.
func (r reader) within(prefix string) string {
	if r.coversAll(prefix) {
		return prefix
	}
	for _, p := range r.key.Prefixes {
		if all := p + ":"; strings.HasPrefix(all, prefix) {
			return all
		}
	}
	return prefix
}

// mustRevoke returns an error unless the reader may revoke.
func (r reader) mustRevoke() error {
	if r.mayRevoke() {
		return nil
	}
	return &lock.Error{Code: lock.ErrRoleMissing, Detail: "Your API key " + r.key.String() + " has the role " + r.Role() +
		", but revoking needs the role admin. Sign in with another key."}
}
