package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

const (
	secretPrefix   = "pk_"
	randomLength = 43 // of 256 bits in base64
)

// Issue returns a new key and its secret, which is kept nowhere: who loses it needs
// another key. Prefixes may be empty, for all names; expires may be zero, for never. The
// error says which of the members cannot be so.
func Issue(name string, role Role, prefixes []string, expires time.Time) (Key, string, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	id := strings.ToLower(rand.Text()[:10])
	secret := secretPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(random)
	k := Key{
		ID: id, Name: name, Role: role, Prefixes: slices.Clone(prefixes),
		CreatedAt: time.Now().UTC().Truncate(time.Second), ExpiresAt: expires.UTC().Truncate(time.Second), Hash: sha256.Sum256([]byte(secret)),
	}
	if expires.IsZero() {
		k.ExpiresAt = time.Time{}
	}
	return k, secret, k.check()
}

// KeyID returns the id that stands in a secret, or false if text is none.
func KeyID(text string) (id string, ok bool) {
	rest, marked := strings.CutPrefix(text, secretPrefix)
	id, random, _ := strings.Cut(rest, "_")
	return id, marked && isID(id) && len(random) == randomLength
}
