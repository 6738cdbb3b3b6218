package integration_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// A keyedReplica requires one of the keys in an auth file. It records the bodies of requests by their keys.
type keyedReplica struct {
	*testing.T
	url, path string
	keys      *access.Keyring
	sent      map[string][]string
}

// newKeyedReplica starts a replica, and returns it with two of its keys.
func newKeyedReplica(t *testing.T) (r *keyedReplica, one, two string) {
	t.Helper()
	r = &keyedReplica{T: t, path: filepath.Join(t.TempDir(), "keys.json"), sent: map[string][]string{}}
	one, two = r.newKey(), r.newKey()
	var err error
	if r.keys, err = access.Open(r.path, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.keys.Close)
	r.url = replica.StartKeyed(t, pgtest.URL(t), r.keys)
	return r, one, two
}

func (r *keyedReplica) newKey() string {
	r.Helper()
	k, secret, err := access.Issue("ci", access.Lock, nil, time.Time{})
	if err == nil {
		err = access.Add(r.path, k)
	}
	if err != nil {
		r.Fatal(err)
	}
	return secret
}

// revoke revokes the key, and returns when the replica refuses it.
func (r *keyedReplica) revoke(secret string) {
	r.Helper()
	id, _ := access.KeyID(secret)
	if _, err := access.Revoke(r.path, id); err != nil {
		r.Fatal(err)
	}
	await.Until(r, "the key is refused", func() bool {
		_, err := r.keys.Find(secret)
		return err != nil
	})
}

// RoundTrip implements http.RoundTripper.
func (r *keyedReplica) RoundTrip(req *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	key := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	r.sent[key] = append(r.sent[key], string(text))
	req.Body = io.NopCloser(bytes.NewReader(text))
	return http.DefaultTransport.RoundTrip(req)
}

// connect returns a client whose key comes from the function.
func (r *keyedReplica) connect(key func(context.Context) (string, error)) *client.Client {
	r.Helper()
	return replica.Connect(r, client.Options{BaseURL: r.url, KeyFunc: key, HTTP: &http.Client{Transport: r}})
}

// A keyFile reads a key from the file at a path.
type keyFile string

func (f keyFile) read(context.Context) (string, error) {
	text, err := os.ReadFile(string(f))
	return string(text), err
}

func (f keyFile) replace(t *testing.T, key string) {
	t.Helper()
	next := string(f) + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(key), 0o600), os.Rename(next, string(f))); err != nil {
		t.Fatal(err)
	}
}

func acquire(c *client.Client, t *testing.T, name string) error {
	t.Helper()
	_, err := c.Acquire(t.Context(), lock.Acquire{Name: name, Holder: "worker-1"})
	return err
}

func TestAReplacedKeyIsUsedFromTheNextRequestOn(t *testing.T) {
	t.Parallel()
	r, one, two := newKeyedReplica(t)
	file := keyFile(filepath.Join(t.TempDir(), "key"))
	c := r.connect(file.read)
	for name, key := range map[string]string{"a": one, "b": two} {
		file.replace(t, key)
		if err := acquire(c, t, name); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.sent[one]) != 1 || len(r.sent[two]) != 1 {
		t.Errorf("sent %v", r.sent)
	}
}

func TestARequestIsSentAgainWithTheKeyThatReplacedARefusedOne(t *testing.T) {
	t.Parallel()
	for what, call := range map[string]func(*client.Client, *testing.T) error{
		"one call": func(c *client.Client, t *testing.T) error { return acquire(c, t, "a") },
		"a batch": func(c *client.Client, t *testing.T) error {
			results := c.Batch(t.Context(), []lock.Command{
				lock.Acquire{Name: "a", Holder: "worker-1"}, lock.Acquire{Name: "b", Holder: "worker-1"},
			})
			return errors.Join(results[0].Err, results[1].Err)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, revoked, valid := newKeyedReplica(t)
			r.revoke(revoked)
			keys := []string{revoked, valid} // replaced while the request is on its way
			c := r.connect(func(context.Context) (string, error) {
				key := keys[0]
				keys = keys[len(keys)-1:]
				return key, nil
			})
			if err := call(c, t); err != nil {
				t.Fatal(err)
			}
			if len(r.sent[valid]) != 1 || !slices.Equal(r.sent[revoked], r.sent[valid]) {
				t.Errorf("sent %v", r.sent)
			}
		})
	}
}

func TestARefusedKeyIsNotSentTwice(t *testing.T) {
	t.Parallel()
	r, revoked, _ := newKeyedReplica(t)
	r.revoke(revoked)
	err := acquire(r.connect(func(context.Context) (string, error) { return revoked, nil }), t, "a")
	if !errors.Is(err, lock.ErrKeyInvalid) || len(r.sent[revoked]) != 1 {
		t.Errorf("%v; sent %v", err, r.sent)
	}
}

func TestAKeyThatCannotBeReadAgainIsUsedUntilItIsRefused(t *testing.T) {
	t.Parallel()
	r, key, _ := newKeyedReplica(t)
	file := keyFile(filepath.Join(t.TempDir(), "key"))
	c := r.connect(file.read)
	err := acquire(c, t, "a")
	if !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") || len(r.sent) != 0 {
		t.Errorf("without any key: %v; sent %v", err, r.sent)
	}
	file.replace(t, key)
	first := acquire(c, t, "a")
	if err := errors.Join(first, os.Remove(string(file)), acquire(c, t, "b")); err != nil {
		t.Fatal(err)
	}
	r.revoke(key)
	err = acquire(c, t, "c")
	if !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("with a refused key: %v", err)
	}
}
