package access

import (
	"fmt"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// A scope is what a key must be good for: one name, or all names that begin so.
type scope struct {
	field string // of the request, where the name stands
	text  string
	all   bool // whether text is how names begin
}

func (c scope) check(k Key) error {
	switch {
	case c.all && k.CoversAll(c.text), !c.all && k.Covers(c.text):
		return nil
	case c.text != "" && lock.CheckName(c.text) != nil:
		return lock.Invalid(c.field, "is no name; use 1 to %d of the characters A-Z a-z 0-9 . _ : @ -, a letter or a digit first", lock.MaxNameLength)
	case c.all && c.text == "":
		return k.errName("does not cover all names. Give %s to ask for what it covers", k.prefixHint())
	case c.all:
		return k.errName("does not cover every name that begins with %s. Give %s to ask for what it covers", c.text, k.prefixHint())
	case c.field == "key":
		return k.errName("does not cover the resource %s. Use a key that does", c.text)
	}
	return k.errName("does not cover the lock %s. Use a key that does", c.text)
}

// prefixHint says how to ask for what the key covers.
func (k Key) prefixHint() string {
	var ways []string
	for _, p := range k.Prefixes {
		ways = append(ways, "prefix="+p+":")
	}
	return strings.Join(ways, " or ")
}

func (k Key) errName(format string, args ...any) error {
	return &lock.Error{Code: lock.ErrNameNotAllowed, Detail: fmt.Sprintf("The API key %s is for %s. It ", k, k.scopeText()) + fmt.Sprintf(format, args...) + "."}
}

// scopeText says in words what the key covers.
func (k Key) scopeText() string {
	return "names under " + strings.Join(k.Prefixes, ", ")
}

func (k Key) errRole(needed Role) error {
	return &lock.Error{Code: lock.ErrRoleMissing, Detail: fmt.Sprintf(
		"The API key %s has the role %s, and this needs the role %s. Use a key that has it.", k, k.Role, needed)}
}
