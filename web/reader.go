package web

import (
	"net/http"
	"strings"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// A reader is whoever the page is shown to, known by an API key. The zero reader is
// anybody, of a service that asks for no keys, and may do anything.
type reader struct {
	key      access.Key
	SignedIn bool
}

func readerOf(r *http.Request) reader {
	key, ok := access.KeyFrom(r.Context())
	return reader{key: key, SignedIn: ok}
}

// Name returns what the key is called.
func (r reader) Name() string { return r.key.Name }

// Role returns the role of the key.
func (r reader) Role() string { return r.key.Role.String() }

// Prefixes returns those that the key is for, none if it is for all names.
func (r reader) Prefixes() []string { return r.key.Prefixes }

// mayRevoke is whether the page offers to revoke. Whether it is done is for the
// service to say.
func (r reader) mayRevoke() bool { return !r.SignedIn || r.key.Role >= access.Admin }

// within returns the prefix to list by for one that was asked for: that, or what the
// key covers of it. Of several it is the first. One of which the key covers nothing
// stays as it is, for the service to refuse.
func (r reader) within(prefix string) string {
	if !r.SignedIn || r.key.CoversAll(prefix) {
		return prefix
	}
	for _, p := range r.key.Prefixes {
		if all := p + ":"; strings.HasPrefix(all, prefix) {
			return all
		}
	}
	return prefix
}

// mustRevoke returns the refusal of a reader who may not revoke.
func (r reader) mustRevoke() error {
	if r.mayRevoke() {
		return nil
	}
	return &lock.Error{Code: lock.ErrRoleMissing, Detail: "Your API key " + r.key.String() + " has the role " + r.Role() +
		", and to revoke takes the role admin. Sign in with a key that has it."}
}
