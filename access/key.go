package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-lock/paddock/lock"
)

// MaxKeyName is the greatest length of a key's name, in characters.
const MaxKeyName = 100

// A Key says what whoever shows its secret may do. It holds no secret, and shows no
// hash when printed.
type Key struct {
	ID        string // random, or chosen by who edits the file: 1 to 32 of a-z 0-9
	Name      string // for people: who or what uses the key. Two keys may share one
	Role      Role
	Prefixes  []string // empty: all names
	CreatedAt time.Time
	ExpiresAt time.Time         // zero: never
	Hash      [sha256.Size]byte // of the secret

	revoked context.Context // of a Key that a Keyring found: ends when that is not its key any more
}

// String returns the key's name and id.
func (k Key) String() string { return fmt.Sprintf("%q (%s)", k.Name, k.ID) }

// GoString returns what String does, for %#v.
func (k Key) GoString() string { return k.String() }

// LogValue returns the key's id and name.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", k.ID), slog.String("name", k.Name))
}

// Covers is whether the key is good for the name, of a lock or of a fenced resource.
func (k Key) Covers(name string) bool {
	for _, p := range k.Prefixes {
		if rest, under := strings.CutPrefix(name, p); under && (rest == "" || rest[0] == ':') {
			return true
		}
	}
	return len(k.Prefixes) == 0
}

// CoversAll is whether the key is good for every name that begins with the text.
func (k Key) CoversAll(begin string) bool {
	for _, p := range k.Prefixes {
		if strings.HasPrefix(begin, p+":") {
			return true
		}
	}
	return len(k.Prefixes) == 0
}

// Expired is whether the key is not good any more at now.
func (k Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// check returns an error that says in which member the key is none that there can be.
func (k Key) check() error {
	if !isID(k.ID) {
		return errors.New("id: give 1 to 32 of the characters a-z 0-9")
	}
	if n := utf8.RuneCountInString(k.Name); n < 1 || n > MaxKeyName || !utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, unicode.IsControl) {
		return fmt.Errorf("name: give 1 to %d characters, none of them a control character", MaxKeyName)
	}
	if RoleOf(k.Role.String()) == 0 {
		return errors.New("role: give read, lock or admin")
	}
	for i, p := range k.Prefixes {
		if err := checkPrefix(p); err != nil {
			return fmt.Errorf("prefixes[%d]: %w", i, err)
		}
	}
	return k.checkInstants()
}

func (k Key) checkInstants() error {
	for member, at := range map[string]time.Time{"created_at": k.CreatedAt, "expires_at": k.ExpiresAt} {
		if year := at.UTC().Year(); year < 1 || year > 9999 {
			return errors.New(member + ": is in no year from 1 to 9999")
		}
	}
	if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(k.CreatedAt) {
		return errors.New("expires_at: is not after created_at")
	}
	return nil
}

// checkPrefix returns an error unless prefix can be one of a key's.
func checkPrefix(prefix string) error {
	if strings.HasSuffix(prefix, ":") {
		return fmt.Errorf("%q: leave the last colon out; %s covers the lock of that name and all under it", prefix, strings.TrimRight(prefix, ":"))
	}
	if lock.CheckName(prefix) != nil {
		return fmt.Errorf("%q is not how a name begins; use A-Z a-z 0-9 . _ : @ -, a letter or a digit first, %d at most", prefix, lock.MaxNameLength)
	}
	return nil
}

func isID(id string) bool {
	return id != "" && len(id) <= 32 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

type keyOfContext struct{}

// WithKey returns ctx with the key: what is asked for under it is asked for by that key.
func WithKey(ctx context.Context, k Key) context.Context {
	return context.WithValue(ctx, keyOfContext{}, k)
}

// KeyFrom returns the key of ctx, and whether it has one.
func KeyFrom(ctx context.Context) (Key, bool) {
	k, ok := ctx.Value(keyOfContext{}).(Key)
	return k, ok
}

type continuedOfContext struct{}

// Continued returns ctx for calls that go on with one that was let through: they count
// neither as calls nor as waiters. They are checked like any other.
func Continued(ctx context.Context) context.Context {
	return context.WithValue(ctx, continuedOfContext{}, true)
}

func isContinued(ctx context.Context) bool { return ctx.Value(continuedOfContext{}) != nil }
