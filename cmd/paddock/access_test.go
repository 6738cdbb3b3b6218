package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// A keyedReplica is a replica in its own process that requires API keys.
type keyedReplica struct {
	*testing.T
	process *process
	base    string
	keys    string // the auth file
	http    *http.Client
}

// newKeyedReplica starts a replica whose key file is still empty.
func newKeyedReplica(t *testing.T, args ...string) *keyedReplica {
	t.Helper()
	h := &keyedReplica{T: t, keys: filepath.Join(t.TempDir(), "keys.json"), http: &http.Client{Timeout: proctest.Patience}}
	h.revoke(h.newKey(access.Read).ID)
	h.process, h.base = startServe(t, pgtest.URL(t), append([]string{"--auth-file", h.keys}, args...)...)
	return h
}

// An issuedKey is a key and its secret.
type issuedKey struct {
	access.Key
	secret string
}

// newKey creates a key. The replica may not have read it yet.
func (h *keyedReplica) newKey(role access.Role, prefixes ...string) issuedKey {
	h.Helper()
	args := []string{"key", "new", "--auth-file", h.keys, "--role", role.String()}
	for _, p := range prefixes {
		args = append(args, "--prefix", p)
	}
	code, stdout, stderr := call(h.T, nil, append(args, "ci")...)
	secret := strings.TrimSuffix(stdout, "\n")
	id, ok := access.KeyID(secret)
	if code != exitOK || !ok || !strings.Contains(stderr, id) || strings.Contains(stderr, secret) {
		h.Fatalf("key new: exit code %d, and printed the key %t:\n%s", code, ok, stderr)
	}
	return issuedKey{access.Key{ID: id, Role: role, Prefixes: prefixes}, secret}
}

// newLoadedKey creates a key and waits until the replica has read it.
func (h *keyedReplica) newLoadedKey(role access.Role, prefixes ...string) issuedKey {
	h.Helper()
	k := h.newKey(role, prefixes...)
	h.process.Stderr.Await(h.T, `"added":\[[^\]]*"(`+k.ID+`)"`)
	return k
}

func (h *keyedReplica) revoke(id string) {
	h.Helper()
	if code, stdout, stderr := call(h.T, nil, "key", "revoke", "--auth-file", h.keys, id); code != exitOK ||
		!strings.Contains(stdout, id) {
		h.Fatalf("key revoke: exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// request sends a request with the key, empty for none, and returns the status and the problem, if the answer is one.
func (h *keyedReplica) request(method, path, body, secret string) (int, lock.Error) {
	h.Helper()
	request, err := http.NewRequestWithContext(h.Context(), method, h.base+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	response, err := h.http.Do(request)
	if err != nil {
		h.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		h.Fatal(err)
	}
	var said lock.Error
	if response.StatusCode >= http.StatusBadRequest {
		if err := json.Unmarshal(text, &said); err != nil {
			h.Fatalf("%s %s: %d is not a problem document: %s", method, path, response.StatusCode, text)
		}
	}
	return response.StatusCode, said
}

// expectProblem checks the status, the code and a part of the detail of a refused request.
func (h *keyedReplica) expectProblem(status int, code lock.Code, words, method, path, body, secret string) {
	h.Helper()
	got, said := h.request(method, path, body, secret)
	if got != status || said.Code != code || !strings.Contains(said.Detail, words) {
		h.Errorf("%s %s: %d %s, want %d %s and %q:\n%s", method, path, got, said.Code, status, code, words, said.Detail)
	}
}

// expectStatus checks the status of a request.
func (h *keyedReplica) expectStatus(status int, method, path, body, secret string) {
	h.Helper()
	if got, said := h.request(method, path, body, secret); got != status {
		h.Errorf("%s %s: %d, want %d: %s", method, path, got, status, said.Detail)
	}
}

const theLock = "/v1/locks/billing:x"

// eventually polls every 100 ms, for at most proctest.Patience.
func (h *keyedReplica) eventually(so func() bool) {
	h.Helper()
	again, enough := time.NewTicker(100*time.Millisecond), time.After(proctest.Patience)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-enough:
			h.Fatal("timed out")
		}
	}
}

func TestKeyCannotExceedItsLimits(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t, "--rate-per-key=0.001", "--burst-per-key=3", "--waiters-per-key=1", "--streams-per-key=1",
		"--max-streams=1")
	k, other := h.newLoadedKey(access.Lock), h.newLoadedKey(access.Lock)
	for range 3 {
		h.expectStatus(http.StatusOK, "GET", theLock, "", k.secret)
	}
	h.expectProblem(http.StatusTooManyRequests, lock.ErrRateLimited, "calls per second", "GET", theLock, "", k.secret)
	h.expectStatus(http.StatusOK, "GET", theLock, "", other.secret)
	follows, err := http.NewRequestWithContext(t.Context(), "GET", h.base+"/v1/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	follows.Header.Set("Authorization", "Bearer "+other.secret)
	stream, err := h.http.Do(follows)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("%v, %+v", err, stream)
	}
	h.expectProblem(http.StatusTooManyRequests, lock.ErrTooManyWaiters, "streams", "GET", "/v1/events/stream", "",
		other.secret)
	mustClose(t, stream.Body)
}
