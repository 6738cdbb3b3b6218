package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// A harness is a Client whose requests are held until the test answers them. It runs in a
// synctest bubble.
type harness struct {
	t *testing.T
	*client.Client
	all     sync.WaitGroup // the calls
	connect func()         // blocks until there is a connection; nil for immediately

	mu   sync.Mutex
	held []*heldRequest
}

// A heldRequest waits for its answer.
type heldRequest struct {
	path   string
	length int64
	items  []requestItem
	size   int
	res    chan func(*http.Request) (*http.Response, error)
	gone   <-chan struct{}
}

// A requestItem is an item of a batch, or the call of a single request.
type requestItem struct {
	Op, Name, Holder string
	LeaseID          string `json:"lease_id"`
}

func newHarness(t *testing.T, o client.Options) *harness {
	t.Helper()
	h := &harness{t: t}
	o.BaseURL, o.HTTP = "http://paddock.test", &http.Client{Transport: roundTripFunc(h.hold)}
	h.Client = open(t, o)
	return h
}

// hold holds a request until it is answered or canceled.
func (h *harness) hold(r *http.Request) (*http.Response, error) {
	if h.connect != nil {
		h.connect()
	}
	a, err := readHeld(r)
	if err != nil {
		h.t.Error(err)
		return nil, err
	}
	h.mu.Lock()
	h.held = append(h.held, a)
	h.mu.Unlock()
	select {
	case answer := <-a.res:
		return answer(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func readHeld(r *http.Request) (*heldRequest, error) {
	a := &heldRequest{path: r.URL.Path, length: r.ContentLength, gone: r.Context().Done(), res: make(chan func(*http.Request) (*http.Response, error))}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.size = len(text)
	if a.isBatch() {
		var body struct{ Items []requestItem }
		err = json.Unmarshal(text, &body)
		a.items = body.Items
		return a, err
	}
	one := requestItem{Op: path.Base(a.path), Name: path.Base(path.Dir(a.path))}
	err = json.Unmarshal(text, &one)
	a.items = []requestItem{one}
	return a, err
}

func (a *heldRequest) isBatch() bool { return a.path == "/v1/batch" }

// String returns OP:NAME for a single request and [OP:NAME OP:NAME] for a batch.
func (a *heldRequest) String() string {
	names := make([]string, len(a.items))
	for i, item := range a.items {
		names[i] = item.Op[:2] + ":" + item.Name
	}
	if a.isBatch() {
		return "[" + strings.Join(names, " ") + "]"
	}
	return names[0]
}

// answer answers the request.
func (a *heldRequest) answer(status int, contentType, body string) {
	a.res <- func(r *http.Request) (*http.Response, error) { return reply(r, status, contentType, body), nil }
}

// grant answers as the service would, with a different token for each item.
func (a *heldRequest) grant() {
	if !a.isBatch() {
		status, text := a.items[0].granted(1)
		a.answer(status, "application/json", text)
		return
	}
	results := make([]string, len(a.items))
	for i, item := range a.items {
		status, text := item.granted(i + 1)
		results[i] = fmt.Sprintf(`{"status":%d,"lease":%s}`, status, text)
		if text == "" {
			results[i] = fmt.Sprintf(`{"status":%d}`, status)
		}
	}
	a.answer(http.StatusOK, "application/json", `{"results":[`+strings.Join(results, ",")+`]}`)
}

func (a requestItem) granted(token int) (int, string) {
	status := map[string]int{"acquire": 201, "renew": 200, "release": 204}[a.Op]
	if a.Op == "release" {
		return status, ""
	}
	return status, fmt.Sprintf(`{"name":%q,"lease_id":%q,"fencing_token":%d,"slot":0,"mode":"exclusive","holder":%q,"ttl_ms":30000,
		"grace_ms":0,"expires_in_ms":29000,"acquired_at":"2026-01-02T03:04:05Z","expires_at":"2026-01-02T03:04:35Z"}`,
		a.Name, a.LeaseID, token, a.Holder)
}

// pending waits until all goroutines are blocked, then removes and returns the held requests.
func (h *harness) pending() []*heldRequest {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := h.held
	h.held = nil
	return waiting
}

// requests is pending, and fails the test unless there are n requests.
func (h *harness) requests(n int) []*heldRequest {
	h.t.Helper()
	got := h.pending()
	if len(got) != n {
		h.t.Fatalf("%d requests are held: %v, want %d", len(got), got, n)
	}
	return got
}

// request returns the only held request and checks what it asks for.
func (h *harness) request(want string) *heldRequest {
	h.t.Helper()
	a := h.requests(1)[0]
	if a.String() != want {
		h.t.Errorf("asked for %v, want %s", a, want)
	}
	return a
}

// saturate starts MaxInFlight requests, so that further calls gather, and returns them.
func (h *harness) saturate() []*heldRequest {
	h.t.Helper()
	for n := range client.MaxInFlight {
		h.call(func() error {
			return h.Release(h.t.Context(), lock.Release{Locks: []string{fmt.Sprintf("busy-%d", n)}, LeaseID: leaseID})
		})
	}
	return h.requests(client.MaxInFlight)
}

// call starts a call that must succeed.
func (h *harness) call(do func() error) {
	h.all.Go(func() {
		if err := do(); err != nil {
			h.t.Error(err)
		}
	})
	synctest.Wait()
}

// fail starts a call that must fail. It returns a channel that receives the error.
func (h *harness) fail(do func() error) <-chan *lock.Error {
	failed := make(chan *lock.Error, 1)
	h.all.Go(func() {
		var e *lock.Error
		if err := do(); !errors.As(err, &e) {
			h.t.Errorf("the call ended with %v", err)
		}
		failed <- e
	})
	synctest.Wait()
	return failed
}

// sleepPast sleeps until just after the pause.
func (h *harness) sleepPast(pause time.Duration) { <-time.After(pause + time.Nanosecond) }

func grantAll(requests []*heldRequest) {
	for _, a := range requests {
		a.grant()
	}
}
