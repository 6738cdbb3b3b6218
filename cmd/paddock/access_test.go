package main

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
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
	return newKeyedReplicaOn(t, pgtest.URL(t), args...)
}

// newKeyedReplicaOn is newKeyedReplica for a given database.
func newKeyedReplicaOn(t *testing.T, databaseURL string, args ...string) *keyedReplica {
	t.Helper()
	h := &keyedReplica{T: t, keys: filepath.Join(t.TempDir(), "keys.json"), http: &http.Client{Timeout: proctest.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	h.revoke(h.newKey(access.Read).ID)
	h.process, h.base = startServe(t, databaseURL, append([]string{"--auth-file", h.keys}, args...)...)
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

func TestKeyCannotExceedItsLimits(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t, "--rate-per-key=0.001", "--burst-per-key=3", "--waiters-per-key=1", "--streams-per-key=1",
		"--max-streams=1")
	k, other := h.newLoadedKey(access.Lock), h.newLoadedKey(access.Lock)
	expect := func(status int, path string, key issuedKey, words string) io.Closer {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.base+path, nil)
		mustBeNil(t, err)
		request.Header.Set("Authorization", "Bearer "+key.secret)
		answer, err := h.http.Do(request)
		mustBeNil(t, err)
		text := make([]byte, 1000)
		n, err := answer.Body.Read(text)
		if answer.StatusCode != status || !strings.Contains(string(text[:n]), words) {
			t.Errorf("%s: %s, %v, want %d and %q:\n%s", path, answer.Status, err, status, words, text[:n])
		}
		return answer.Body
	}
	for range 3 {
		mustClose(t, expect(http.StatusOK, "/v1/locks/x", k, "free"))
	}
	mustClose(t, expect(http.StatusTooManyRequests, "/v1/locks/x", k, "calls per second"))
	mustClose(t, expect(http.StatusOK, "/v1/locks/x", other, "free"))
	stream := expect(http.StatusOK, "/v1/events/stream", other, "")
	mustClose(t, expect(http.StatusTooManyRequests, "/v1/events/stream", other, "streams"))
	mustClose(t, stream)
}

func TestTheKeyThatRevokedIsShown(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	as := map[string]string{"PADDOCK_URL": h.base, "PADDOCK_KEY": h.newLoadedKey(access.Admin).secret}
	want := func(exit int, words string, args ...string) string {
		t.Helper()
		code, stdout, stderr := call(t, as, args...)
		if code != exit || !strings.Contains(stdout+stderr, words) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", args, code, exit, words, stdout, stderr)
		}
		return stdout
	}
	var lease api.Lease
	mustBeNil(t, json.Unmarshal([]byte(want(exitOK, "lease_id", "acquire", "n", "--holder=me", "-o", "json")), &lease))
	want(exitOK, "", "revoke", "n", "--token", strconv.FormatInt(lease.FencingToken, 10), "--reason=db-3 is gone")
	want(exitLeaseLost, "An operator (key ci) revoked it: db-3 is gone. Stop the work", "renew", "n", "--lease-id", uuid.UUID(lease.LeaseID).String())
	history := want(exitOK, ": db-3 is gone\n", "history", "n")
	if !regexp.MustCompile(`granted .* me +ci +-\n.* revoked .* me +ci +held for`).MatchString(history) {
		t.Errorf("the history is\n%s", history)
	}
	want(exitOK, "db-3 is gone (revoked by ci)", "history", "n", "--at", lease.AcquiredAt.Format(time.RFC3339Nano))
	want(exitOK, `"by": "ci"`, "history", "n", "-o", "json")
}
