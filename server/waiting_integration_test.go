package server_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

// as returns the body of an acquire, or of a release if more is empty.
func as(id, more string) string { return `{"lease_id": "` + id + `"` + more + `}` }

// until waits until a member of the lock has this value, with If-None-Match.
func (s harness) until(path, member string, want any) {
	s.t.Helper()
	for tag := `""`; ; {
		r := s.request(http.MethodGet, path+"?wait_ms=10000", "")
		r.Header.Set("If-None-Match", tag)
		got := s.do(r)
		switch {
		case got.StatusCode != http.StatusOK:
			s.t.Fatalf("%s is not %v: %d %s", member, want, got.StatusCode, got.text)
		case got.body[member] == want:
			return
		}
		tag = got.Header.Get("ETag")
	}
}

// inBackground sends the request and returns a channel for its answer.
func (s harness) inBackground(r *http.Request) <-chan answer {
	answered := make(chan answer, 1)
	go func() { answered <- s.do(r) }()
	return answered
}

func TestReleaseHandsOverTheLock(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	mine, yours := uuid.NewString(), uuid.NewString()
	token := s.post(acquirePath, as(mine, `, "holder": "me"`)).number(t, "fencing_token")
	start := time.Now()
	answered := s.inBackground(s.request(http.MethodPost, acquirePath, as(yours, `, "holder": "you", "wait_ms": 50000, "ttl_ms": 60000`)))
	s.until("/v1/locks/jobs:nightly", "waiters", 1.0)
	queue := s.get("/v1/locks/jobs:nightly/queue")
	first := queue.body["waiters"].([]any)[0].(map[string]any)
	if first["holder"] != "you" || first["blocked_by"] != "holders" || first["attached"] != true || len(first["leases"].([]any)) != 1 {
		t.Errorf("queue %s", queue.text)
	}
	s.post(acquirePath, `{"holder": "another"}`).want(t, http.StatusConflict, map[string]any{"code": "lock_held", "waiters_ahead": 1.0, "holder": "me"})
	s.post("/v1/locks/jobs:nightly/release", as(mine, ``)).want(t, http.StatusNoContent, nil)
	got := <-answered
	got.want(t, http.StatusCreated, map[string]any{"lease_id": yours, "slot": 0.0})
	if got.number(t, "fencing_token") <= token || time.Since(start) > 20*time.Second || got.number(t, "expires_in_ms") < 40000 {
		t.Errorf("after %v: %s", time.Since(start), got.text)
	}
	s.until("/v1/locks/jobs:nightly", "waiters", 0.0)
}

func TestPlaceIsKept(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	mine, yours := uuid.NewString(), uuid.NewString()
	s.post(acquirePath, as(mine, `, "holder": "me"`)).want(t, http.StatusCreated, nil)
	kept := as(yours, `, "holder": "you", "wait_ms": 1, "keep_place": true`)
	s.post(acquirePath, kept).want(t, http.StatusConflict, map[string]any{"code": "lock_held", "place_kept_ms": 10000.0, "waiters_ahead": nil})
	waiter := func() map[string]any {
		return s.get("/v1/locks/jobs:nightly/queue").body["waiters"].([]any)[0].(map[string]any)
	}
	first := waiter()
	if first["attached"] != false || first["blocked_by"] != "disconnected" || first["place_kept_ms"] == nil {
		t.Errorf("waiter %v", first)
	}
	s.post(acquirePath, kept).want(t, http.StatusConflict, nil)
	if again := waiter(); again["place"] != first["place"] {
		t.Errorf("from place %v to %v", first["place"], again["place"])
	}
	s.post("/v1/locks/jobs:nightly/release", as(mine, ``)).want(t, http.StatusNoContent, nil)
	s.post(acquirePath, as(yours, `, "holder": "you"`)).want(t, http.StatusCreated, nil)
}

// cutWait waits for jobs:nightly, which waits others wait for as well, and closes the connection.
func (s harness) cutWait(t *testing.T, body string, others float64) {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	r := s.request(http.MethodPost, acquirePath, body)
	go func() {
		answer, err := s.client.Do(r.WithContext(ctx))
		if err == nil {
			err = fmt.Errorf("answered %d", answer.StatusCode)
		}
		gone <- err
	}()
	s.until("/v1/locks/jobs:nightly", "waiters", others+1)
	hangUp()
	if err := <-gone; !strings.Contains(err.Error(), "context canceled") {
		t.Error(err)
	}
}

// first waits until the first waiter of jobs:nightly has the holder, and a call or none, and returns it.
func (s harness) first(t *testing.T, holder string, attached bool) map[string]any {
	t.Helper()
	for {
		got := s.get("/v1/locks/jobs:nightly/queue")
		list := got.body["waiters"].([]any)
		if len(list) > 0 {
			if w := list[0].(map[string]any); w["holder"] == holder && w["attached"] == attached {
				return w
			}
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the queue is %s", got.text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestPlaceOutlivesTheConnection: with or without keep_place, the next call with the lease_id finds its place, and a
// release gives it up.
func TestPlaceOutlivesTheConnection(t *testing.T) {
	t.Parallel()
	for _, keep := range []string{"", `, "keep_place": true`} {
		t.Run("with"+keep, func(t *testing.T) {
			t.Parallel()
			s, _ := serveStore(t)
			mine, yours, others, gone := uuid.NewString(), uuid.NewString(), uuid.NewString(), uuid.NewString()
			s.post(acquirePath, as(mine, `, "holder": "me"`)).want(t, http.StatusCreated, nil)
			you := as(yours, `, "holder": "you", "wait_ms": 30000`+keep)
			s.cutWait(t, you, 0)
			if w := s.first(t, "you", false); w["place_kept_ms"].(float64) <= 10_000 || w["blocked_by"] != "disconnected" {
				t.Errorf("the disconnected waiter is %v", w)
			}
			third := s.inBackground(s.request(http.MethodPost, acquirePath, as(others, `, "holder": "third", "wait_ms": 30000`)))
			s.until("/v1/locks/jobs:nightly", "waiters", 2.0)
			again := s.inBackground(s.request(http.MethodPost, acquirePath, you))
			if w := s.first(t, "you", true); w["place"] != 2.0 {
				t.Errorf("the waiter has returned as %v", w)
			}
			s.post("/v1/locks/jobs:nightly/release", as(mine, ``)).want(t, http.StatusNoContent, nil)
			got := <-again
			got.want(t, http.StatusCreated, map[string]any{"lease_id": yours})
			s.cutWait(t, as(gone, `, "holder": "gone", "wait_ms": 30000`), 1)
			s.post("/v1/locks/jobs:nightly/release", as(gone, ``)).want(t, http.StatusNoContent, nil)
			s.until("/v1/locks/jobs:nightly", "waiters", 1.0)
			s.post("/v1/locks/jobs:nightly/release", as(yours, ``)).want(t, http.StatusNoContent, nil)
			got = <-third
			got.want(t, http.StatusCreated, map[string]any{"lease_id": others})
		})
	}
}

func TestDisconnectedClientWithoutALeaseIDLeavesTheQueue(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	s.post(acquirePath, `{"holder": "me"}`).want(t, http.StatusCreated, nil)
	s.cutWait(t, `{"holder": "you", "wait_ms": 50000}`, 0)
	s.until("/v1/locks/jobs:nightly", "waiters", 0.0)
	if events := s.get("/v1/events"); !strings.Contains(events.text, `"kind":"dequeued"`) || !strings.Contains(events.text, "client disconnected") {
		t.Errorf("events %s", events.text)
	}
}

func TestModesOverTheWire(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	first := s.post("/v1/locks/doc/acquire", `{"holder": "r1", "mode": "shared"}`)
	first.want(t, http.StatusCreated, map[string]any{"slot": 1.0})
	s.post("/v1/locks/doc/acquire", `{"holder": "r2", "mode": "shared"}`).
		want(t, http.StatusCreated, map[string]any{"slot": 2.0, "fencing_token": first.body["fencing_token"]})
	s.post("/v1/locks/doc/acquire", `{"holder": "w"}`).want(t, http.StatusConflict, map[string]any{"code": "lock_held"})

	var tokens []float64
	for slot := range 2 {
		got := s.post("/v1/locks/pool/acquire", `{"holder": "p", "mode": "permit", "capacity": 2}`)
		got.want(t, http.StatusCreated, map[string]any{"slot": float64(slot + 1)})
		tokens = append(tokens, got.number(t, "fencing_token"))
	}
	s.post("/v1/locks/pool/acquire", `{"holder": "p", "mode": "permit", "capacity": 2}`).want(t, http.StatusConflict, map[string]any{"code": "lock_held"})
	s.post("/v1/locks/pool/acquire", `{"holder": "p", "mode": "permit", "capacity": 3}`).
		want(t, http.StatusConflict, map[string]any{"code": "capacity_mismatch", "capacity": 2.0})
	s.get("/v1/locks/pool").want(t, http.StatusOK, map[string]any{"capacity": 2.0, "waiters": 0.0})
	write := func(slot string) string {
		return fmt.Sprintf(`{"lock": "pool", "fencing_token": %v, "value": 1%s}`, tokens[0], slot)
	}
	s.send("PUT", "/v1/fenced/pool.1", write(`, "slot": 1`)).want(t, http.StatusOK, nil)
	s.send("PUT", "/v1/fenced/pool.2", write(``)).want(t, http.StatusPreconditionFailed, map[string]any{"code": "stale_token"})
	verify := func(slot string) string {
		return fmt.Sprintf(`{"name": "pool", "fencing_token": %v%s}`, tokens[0], slot)
	}
	s.post("/v1/tokens/verify", verify(`, "slot": 1`)).want(t, http.StatusOK, map[string]any{"status": "current"})
	s.post("/v1/tokens/verify", verify(`, "slot": 2`)).want(t, http.StatusOK, map[string]any{"current": false})
}

// TestStreamIsComplete reads events across a reconnect.
func TestStreamIsComplete(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	stream := s.stream("/v1/events/stream?lock=a", "")
	if got := stream.next(); got.name != "sync" {
		t.Fatalf("received %+v", got)
	}
	const rounds = 50
	var kinds []string
	for n := range rounds {
		id := uuid.NewString()
		s.post("/v1/locks/a/acquire", as(id, `, "holder": "h"`)).want(t, http.StatusCreated, nil)
		s.post("/v1/locks/b/acquire", `{"holder": "h", "ttl_ms": 100}`)
		s.post("/v1/locks/a/release", as(id, ``)).want(t, http.StatusNoContent, nil)
		granted := stream.nextNews()
		if n%10 == 0 { // the next stream sends the release
			stream.close()
			stream = s.stream("/v1/events/stream?lock=a", granted.id)
		}
		kinds = append(kinds, granted.name, stream.nextNews().name)
	}
	if got := strings.Join(kinds, " "); got != strings.TrimSpace(strings.Repeat("granted released ", rounds)) {
		t.Errorf("received %s", got)
	}
	s.do(s.streamRequest("x")).want(t, http.StatusBadRequest, map[string]any{"pointer": "Last-Event-ID"})
}

// nextNews returns the next event of a lock.
func (s stream) nextNews() message {
	s.t.Helper()
	for {
		if got := s.next(); got.ended || got.name != "sync" && got.name != "" {
			return got
		}
	}
}

func (s harness) streamRequest(last string) *http.Request {
	r := s.request(http.MethodGet, "/v1/events/stream", "")
	r.Header.Set("Last-Event-ID", last)
	return r
}

func openStore(t *testing.T, url string) *store.Store {
	t.Helper()
	locks, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	return locks
}

// stoppableReplica returns a replica, and a function that stops it and returns the error of Serve.
func stoppableReplica(t *testing.T, url string) (harness, func() error) {
	t.Helper()
	locks := openStore(t, url)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.New(server.Options{Locks: locks, Drain: locks.Drain}).Serve(ctx, l) }()
	s := harness{t: t, url: "http://" + l.Addr().String(), client: &http.Client{Transport: contract{t, new(http.Transport)}}}
	return s, func() error { end(); return <-served }
}

// TestStoppingReplicaKeepsPlaces stops the replica of a waiting call, which continues on another replica.
func TestStoppingReplicaKeepsPlaces(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	leaving, end := stoppableReplica(t, url)
	staying := serve(t, server.Options{Locks: openStore(t, url)})
	mine, yours := uuid.NewString(), uuid.NewString()
	staying.post(acquirePath, as(mine, `, "holder": "me"`)).want(t, http.StatusCreated, nil)
	wait := as(yours, `, "holder": "you", "wait_ms": 50000`)
	answered := leaving.inBackground(leaving.request(http.MethodPost, acquirePath, wait))
	staying.until("/v1/locks/jobs:nightly", "waiters", 1.0)
	place := func() any {
		return staying.get("/v1/locks/jobs:nightly/queue").body["waiters"].([]any)[0].(map[string]any)["place"]
	}
	before, start := place(), time.Now()
	if err := end(); err != nil || time.Since(start) > 10*time.Second {
		t.Errorf("ended after %v with %v", time.Since(start), err)
	}
	got := <-answered
	got.want(t, http.StatusServiceUnavailable, map[string]any{"code": "unavailable"})
	answered = staying.inBackground(staying.request(http.MethodPost, acquirePath, wait))
	if after := place(); after != before {
		t.Errorf("from place %v to %v", before, after)
	}
	staying.post("/v1/locks/jobs:nightly/release", as(mine, ``)).want(t, http.StatusNoContent, nil)
	got = <-answered
	got.want(t, http.StatusCreated, map[string]any{"lease_id": yours})
}
