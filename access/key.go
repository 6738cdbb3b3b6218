package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-lock/paddock/lock"
)

// A Role is the set of operations that a key may call. Each role includes the previous ones. The zero Role allows
// none.
type Role int

// The roles.
const (
	// Read may call the methods that change nothing.
	Read Role = 1 + iota
	// Lock may also acquire, renew and release, and write fenced resources.
	Lock
	// Admin may also revoke leases of other holders, declare trees, freeze locks and set rules.
	Admin
)

var roleNames = [...]string{Read: "read", Lock: "lock", Admin: "admin"}

// String returns the role's name, or "none" for an unknown role.
func (r Role) String() string {
	if r < Read || int(r) >= len(roleNames) {
		return "none"
	}
	return roleNames[r]
}

// RoleOf returns the Role with this name, or zero if there is none.
func RoleOf(text string) Role {
	for r := Read; int(r) < len(roleNames); r++ {
		if roleNames[r] == text {
			return r
		}
	}
	return 0
}

// MaxKeyName is the greatest length of a key's name, in characters.
const MaxKeyName = 100

// A Key is an API key without its secret. Printing and logging it show only the id and the name.
type Key struct {
	ID        string // random, or chosen by the editor of the file: 1 to 32 of a-z 0-9
	Name      string // for people: who or what uses the key; need not be unique
	Role      Role
	Prefixes  []string // empty: all names
	CreatedAt time.Time
	ExpiresAt time.Time         // zero: never
	Hash      [sha256.Size]byte // of the secret

	revocation context.Context // ends when the key is removed or changed; nil unless from a Keyring
}

// String returns the key's name and id.
func (k Key) String() string { return fmt.Sprintf("%q (%s)", k.Name, k.ID) }

// GoString returns what String does, for %#v.
func (k Key) GoString() string { return k.String() }

// LogValue returns the key's id and name.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", k.ID), slog.String("name", k.Name))
}

// Covers reports whether the key covers this name of a lock or a fenced resource.
func (k Key) Covers(name string) bool {
	for _, p := range k.Prefixes {
		if rest, under := strings.CutPrefix(name, p); under && (rest == "" || rest[0] == ':') {
			return true
		}
	}
	return len(k.Prefixes) == 0
}

// CoversAll reports whether the key covers every name that begins with the text.
func (k Key) CoversAll(begin string) bool {
	for _, p := range k.Prefixes {
		if strings.HasPrefix(begin, p+":") {
			return true
		}
	}
	return len(k.Prefixes) == 0
}

// Expired reports whether the key has expired at now.
func (k Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// sameAs reports whether two keys with the same id are equal, except for CreatedAt.
func (k Key) sameAs(other Key) bool {
	return k.Hash == other.Hash && k.Role == other.Role && k.Name == other.Name &&
		slices.Equal(k.Prefixes, other.Prefixes) && k.ExpiresAt.Equal(other.ExpiresAt)
}

func errInvalid() error {
	return &lock.Error{Code: lock.ErrKeyInvalid,
		Detail: "Unknown API key: mistyped or revoked. Ask your operator for a new one."}
}

func (k Key) errExpired() error {
	return &lock.Error{Code: lock.ErrKeyExpired, Detail: fmt.Sprintf(
		"The API key %s expired at %s. Ask your operator for a new one.", k, k.ExpiresAt.UTC().Format(time.RFC3339))}
}

// check returns an error that names the first invalid member, or nil.
func (k Key) check() error {
	if !isID(k.ID) {
		return errors.New("id: use 1 to 32 of the characters a-z 0-9")
	}
	n := utf8.RuneCountInString(k.Name)
	if n < 1 || n > MaxKeyName || !utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, unicode.IsControl) {
		return fmt.Errorf("name: use 1 to %d characters, without control characters", MaxKeyName)
	}
	if RoleOf(k.Role.String()) == 0 {
		return errors.New("role: use read, lock or admin")
	}
	for i, p := range k.Prefixes {
		if err := checkPrefix(p); err != nil {
			return fmt.Errorf("prefixes[%d]: %w", i, err)
		}
	}
	return k.checkTimes()
}

func (k Key) checkTimes() error {
	for member, at := range map[string]time.Time{"created_at": k.CreatedAt, "expires_at": k.ExpiresAt} {
		if year := at.UTC().Year(); year < 1 || year > 9999 {
			return errors.New(member + ": use a year from 1 to 9999")
		}
	}
	if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(k.CreatedAt) {
		return errors.New("expires_at: use a time after created_at")
	}
	return nil
}

// checkPrefix returns an error unless a key may have this prefix.
func checkPrefix(prefix string) error {
	if strings.HasSuffix(prefix, ":") {
		return fmt.Errorf("%q: omit the last colon; %s covers the lock of this name and all names under it",
			prefix, strings.TrimRight(prefix, ":"))
	}
	if lock.CheckName(prefix) != nil {
		return fmt.Errorf("%q is not a valid prefix; use at most %d of A-Z a-z 0-9 . _ : @ -, with a letter or digit first",
			prefix, lock.MaxNameLength)
	}
	return nil
}

func isID(id string) bool {
	return id != "" && len(id) <= 32 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

const (
	secretPrefix = "pk_"
	randomLength = 43 // of 256 bits in base64
)

// Issue returns a new key and its secret, and stores neither. Empty prefixes cover all names; a zero expires means
// never. The error names the invalid argument.
func Issue(name string, role Role, prefixes []string, expires time.Time) (Key, string, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	id := strings.ToLower(rand.Text()[:10])
	secret := secretPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(random)
	k := Key{
		ID: id, Name: name, Role: role, Prefixes: slices.Clone(prefixes),
		CreatedAt: time.Now().UTC().Truncate(time.Second), ExpiresAt: expires.UTC().Truncate(time.Second),
		Hash: sha256.Sum256([]byte(secret)),
	}
	if expires.IsZero() {
		k.ExpiresAt = time.Time{}
	}
	return k, secret, k.check()
}

// KeyID returns the id in a secret. It reports false if text does not have the form of a secret.
func KeyID(text string) (id string, ok bool) {
	rest, marked := strings.CutPrefix(text, secretPrefix)
	id, random, _ := strings.Cut(rest, "_")
	return id, marked && isID(id) && len(random) == randomLength
}

type keyContextKey struct{}

// WithKey returns ctx with the key. Guard checks this key for each call under ctx.
func WithKey(ctx context.Context, k Key) context.Context {
	return context.WithValue(ctx, keyContextKey{}, k)
}

// KeyFrom returns the key of ctx, and whether it has one.
func KeyFrom(ctx context.Context) (Key, bool) {
	k, ok := ctx.Value(keyContextKey{}).(Key)
	return k, ok
}

type continuedContextKey struct{}

// Continued returns ctx for calls that continue an earlier one, such as the next page of a stream. They do not count
// towards rates and waiters. They are checked like other calls.
func Continued(ctx context.Context) context.Context {
	return context.WithValue(ctx, continuedContextKey{}, true)
}

func isContinued(ctx context.Context) bool { return ctx.Value(continuedContextKey{}) != nil }
