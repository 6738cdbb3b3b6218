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

// flags returns the flags of a client with the key.
func (h *keyedReplica) flags(k issuedKey) serviceFlags {
	env := variablesOf(map[string]string{"PADDOCK_KEY": k.secret})
	return serviceFlags{URL: h.base, callerFlags: callerFlags{env: env}}
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

const (
	aLease    = `{"holder":"me","ttl_ms":600000}`
	aRevoke   = `{"fencing_token":1,"reason":"because"}`
	theLock   = "/v1/locks/billing:x"
	theOthers = "/v1/locks/other"
)

func TestRequestsWithoutAValidKeyAreRefused(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	k := h.newLoadedKey(access.Read)
	h.expectStatus(http.StatusOK, "GET", theLock, "", k.secret)
	h.expectProblem(http.StatusUnauthorized, lock.ErrKeyMissing, "Authorization: Bearer", "GET", theLock, "", "")
	for _, wrong := range []string{"x", k.ID, k.secret[:len(k.secret)-1], "pk_" + k.ID + "_" + strings.Repeat("A", 43)} {
		h.expectProblem(http.StatusUnauthorized, lock.ErrKeyInvalid, "", "GET", theLock, "", wrong)
	}
	for _, open := range []string{"/livez", "/readyz"} {
		h.expectStatus(http.StatusOK, "GET", open, "", "")
	}
	expectReady(t, h.base)
}

func TestKeyIsLimitedToItsRoleAndPrefixes(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	reads, locks := h.newLoadedKey(access.Read, "billing"), h.newLoadedKey(access.Lock, "billing")
	admin := h.newLoadedKey(access.Admin)
	h.expectStatus(http.StatusOK, "GET", theLock, "", reads.secret)
	h.expectProblem(http.StatusForbidden, lock.ErrRoleMissing, "needs the role lock", "POST", theLock+"/acquire", aLease,
		reads.secret)
	h.expectStatus(http.StatusCreated, "POST", theLock+"/acquire", aLease, locks.secret)
	h.expectProblem(http.StatusForbidden, lock.ErrRoleMissing, "needs the role admin", "POST", theLock+"/revoke", aRevoke,
		locks.secret)
	for _, k := range []issuedKey{reads, locks} {
		for _, path := range []string{theOthers, theOthers + "/queue", "/v1/locks", "/v1/locks?holder=me",
			"/v1/locks?prefix=billing", "/v1/events", "/v1/events/stream"} {
			h.expectProblem(http.StatusForbidden, lock.ErrNameNotAllowed, "names under billing", "GET", path, "", k.secret)
		}
		h.expectStatus(http.StatusOK, "GET", "/v1/locks?prefix=billing:", "", k.secret)
		h.expectStatus(http.StatusOK, "GET", "/v1/events?lock=billing", "", k.secret)
	}
	h.expectProblem(http.StatusForbidden, lock.ErrNameNotAllowed, "the lock other", "POST", theOthers+"/acquire", aLease,
		locks.secret)
	h.expectStatus(http.StatusOK, "GET", "/v1/locks", "", admin.secret)
	h.expectProblem(http.StatusConflict, lock.ErrTokenMismatch, "", "POST", theLock+"/revoke",
		`{"fencing_token":9007199254740991,"reason":"because"}`, admin.secret)
}

func TestKeysAreReloadedWhileTheServiceRuns(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	first, second := h.newLoadedKey(access.Lock), h.newLoadedKey(access.Lock)
	h.expectStatus(http.StatusCreated, "POST", theLock+"/acquire", aLease, first.secret)
	stream, err := http.NewRequestWithContext(h.Context(), "GET", h.base+"/v1/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream.Header.Set("Authorization", "Bearer "+first.secret)
	followed, err := h.http.Do(stream)
	if err != nil || followed.StatusCode != http.StatusOK {
		t.Fatalf("%v, %+v", err, followed)
	}
	waits := make(chan error, 1)
	go func() {
		waiting := h.flags(first)
		locks, err := waiting.client()
		if err == nil {
			_, err = locks.Acquire(h.Context(), lock.Acquire{Name: "billing:x", Holder: "waiter", Wait: lock.MaxWait})
		}
		waits <- err
	}()
	h.eventually(func() bool {
		locks, err := h.flags(second).client()
		if err != nil {
			t.Fatal(err)
		}
		q, err := locks.Queue(h.Context(), "billing:x")
		if err != nil {
			t.Fatal(err)
		}
		return len(q.Waiters) == 1
	})

	h.revoke(first.ID)
	if err := <-waits; !errors.Is(err, lock.ErrKeyInvalid) {
		t.Errorf("the waiting call ended with %v", err)
	}
	text, err := io.ReadAll(followed.Body)
	if err = errors.Join(err, followed.Body.Close()); err != nil || !strings.Contains(string(text), "key_invalid") {
		t.Errorf("the stream ends with %v:\n%s", err, text)
	}
	h.expectProblem(http.StatusUnauthorized, lock.ErrKeyInvalid, "", "GET", theLock, "", first.secret)
	h.expectStatus(http.StatusOK, "GET", theLock, "", second.secret)
}

func TestExpiredKeyIsRefused(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	code, secret, stderr := call(t, nil, "key", "new", "--auth-file", h.keys, "--role=read", "--expires=2s", "soon over")
	if code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, stderr)
	}
	h.eventually(func() bool {
		_, said := h.request("GET", theLock, "", strings.TrimSpace(secret))
		return said.Code == lock.ErrKeyExpired && strings.Contains(said.Detail, "soon over")
	})
}

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
