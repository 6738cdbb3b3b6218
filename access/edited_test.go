package access_test

import (
	"crypto/sha256"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// edits change a key with the role admin, for all names, in the file: one for each member that matters.
var edits = map[string]func(*access.Key){
	"given another role":   func(k *access.Key) { k.Role = access.Read },
	"given another name":   func(k *access.Key) { k.Name = "another" },
	"given prefixes":       func(k *access.Key) { k.Prefixes = []string{"billing"} },
	"given another expiry": func(k *access.Key) { k.ExpiresAt = k.ExpiresAt.Add(time.Second) },
	"given no expiry":      func(k *access.Key) { k.ExpiresAt = time.Time{} },
	"given another secret": func(k *access.Key) { k.Hash = sha256.Sum256([]byte("another")) },
}

// replaceKey edits the key in the file.
func (r *fixture) replaceKey(id string, edit func(*access.Key)) error {
	keys, err := access.ReadFile(r.path)
	if err != nil {
		return err
	}
	for i := range keys {
		if keys[i].ID == id {
			edit(&keys[i])
		}
	}
	text, err := access.Render(keys)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path, text, 0o600)
}

func TestChangedKeyReplacesTheOldOne(t *testing.T) {
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *fixture, _ access.Key, _ string) {
				want, secret, err := access.Issue("ci", access.Admin, nil, time.Now().Add(time.Hour))
				if err = errors.Join(err, access.Add(r.path, want)); err != nil {
					t.Fatal(err)
				}
				r.waitForReload()
				before := access.WithKey(r.Context(), r.finds(secret))
				if err := r.replaceKey(want.ID, edit); err != nil {
					t.Fatal(err)
				}
				r.waitForReload()
				locks := access.Guard(newSpy(), access.Limits{})
				if err := errOf(locks.Lock(before, "other")); !errors.Is(err, lock.ErrKeyInvalid) {
					t.Errorf("the old key is still accepted: %v", err)
				}
				if edit(&want); want.Hash == sha256.Sum256([]byte("another")) {
					r.refuses(secret, lock.ErrKeyInvalid)
					return
				}
				got := r.finds(secret)
				if got.Role != want.Role || got.Name != want.Name || !reflect.DeepEqual(got.Prefixes, want.Prefixes) && len(want.Prefixes) > 0 ||
					!got.ExpiresAt.Equal(want.ExpiresAt) {
					t.Errorf("found %+v, want %+v", got, want)
				}
			})
		})
	}
}
