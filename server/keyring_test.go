package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
)

// A keyring is a Keyring with its file and the secrets of its keys.
type keyring struct {
	t    testing.TB
	path string
	*access.Keyring
	secrets map[string]string // by key name
	ids     map[string]string
}

// newKeyring returns a Keyring with these keys, and more:
//
//	read, lock, admin   for all names, with the role of that name
//	right, head         for billing, with the roles lock and admin
//	other               for other, with the role lock
//	expired             admin for all names, already expired
func newKeyring(t testing.TB, more ...access.Key) *keyring {
	t.Helper()
	k := &keyring{t: t, path: filepath.Join(t.TempDir(), "keys.json"), secrets: map[string]string{}, ids: map[string]string{}}
	for _, one := range append([]access.Key{
		{Name: "read", Role: access.Read}, {Name: "lock", Role: access.Lock}, {Name: "admin", Role: access.Admin},
		{Name: "right", Role: access.Lock, Prefixes: []string{"billing"}},
		{Name: "head", Role: access.Admin, Prefixes: []string{"billing"}},
		{Name: "other", Role: access.Lock, Prefixes: []string{"other"}},
		{Name: "expired", Role: access.Admin, ExpiresAt: time.Now().Add(-time.Hour)},
	}, more...) {
		k.add(one)
	}
	var err error
	if k.Keyring, err = access.Open(k.path, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func (k *keyring) add(like access.Key) {
	k.t.Helper()
	key, secret, err := access.Issue(like.Name, like.Role, like.Prefixes, time.Time{})
	if err != nil {
		k.t.Fatal(err)
	}
	if !like.ExpiresAt.IsZero() {
		key.CreatedAt, key.ExpiresAt = like.ExpiresAt.Add(-24*time.Hour), like.ExpiresAt
	}
	if err := access.Add(k.path, key); err != nil {
		k.t.Fatal(err)
	}
	k.secrets[like.Name], k.ids[like.Name] = secret, key.ID
}

// revoke removes the key from the file, which the Keyring reloads within about a second.
func (k *keyring) revoke(name string) {
	k.t.Helper()
	if _, err := access.Revoke(k.path, k.ids[name]); err != nil {
		k.t.Fatal(err)
	}
}

// authorize adds the key of this name to the request; "" for none.
func (k *keyring) authorize(r *http.Request, name string) *http.Request {
	if name != "" {
		r.Header.Set("Authorization", "Bearer "+k.secrets[name])
	}
	return r
}

// A handlerTransport is a RoundTripper that calls a handler without a connection. It ends a stream after its first
// flush.
type handlerTransport struct{ http.Handler }

// RoundTrip returns the handler's answer.
func (d handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	w := flushRecorder{httptest.NewRecorder(), cut}
	in := httptest.NewRequestWithContext(ctx, r.Method, r.URL.RequestURI(), r.Body)
	in.Host, in.Header, in.ContentLength = r.URL.Host, r.Header.Clone(), r.ContentLength
	d.ServeHTTP(w, in)
	return w.Result(), nil
}

// A flushRecorder cancels the request when it is flushed.
type flushRecorder struct {
	*httptest.ResponseRecorder
	cut context.CancelFunc
}

// Flush ends the request.
func (c flushRecorder) Flush() { c.cut() }
