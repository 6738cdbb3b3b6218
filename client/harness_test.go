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

// A harness is a way on which every request waits until the test answers it. It lives in
// a bubble of synctest.
type harness struct {
	t *testing.T
	*client.Client
	all     sync.WaitGroup // of the calls
	connect func()         // waits until there is a connection; nil: at once

	mu   sync.Mutex
	held []*heldRequest
}

// heldRequest is a request that waits.
type heldRequest struct {
	path   string
	length int64
	items  []requestItem
	size   int
	res    chan func(*http.Request) (*http.Response, error)
	gone   <-chan struct{}
}

// requestItem is an item, or what a request of its own asks for.
type requestItem struct {
	Op, Name, Holder string
	LeaseID          string `json:"lease_id"`
}

func newHarness(t *testing.T, o client.Options) *harness {
	t.Helper()
	d := &harness{t: t}
	o.BaseURL, o.HTTP = "http://paddock.test", &http.Client{Transport: roundTripFunc(d.hold)}
	d.Client = open(t, o)
	return d
}

// hold has a request wait, or go away with its context.
func (d *harness) hold(r *http.Request) (*http.Response, error) {
	if d.connect != nil {
		d.connect()
	}
	a, err := readHeld(r)
	if err != nil {
		d.t.Error(err)
		return nil, err
	}
	d.mu.Lock()
	d.held = append(d.held, a)
	d.mu.Unlock()
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

// String tells what was asked for: a*b for a batch of a and b.
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

// answer answers the request with that.
func (a *heldRequest) answer(status int, contentType, body string) {
	a.res <- func(r *http.Request) (*http.Response, error) { return reply(r, status, contentType, body), nil }
}

// grant answers as the service would, each item with a token of its own.
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

// pending returns the requests that wait when nothing moves any more, and forgets them.
func (d *harness) pending() []*heldRequest {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting := d.held
	d.held = nil
	return waiting
}

// requests returns the requests that wait, which are to be so many.
func (d *harness) requests(n int) []*heldRequest {
	d.t.Helper()
	got := d.pending()
	if len(got) != n {
		d.t.Fatalf("%d requests wait: %v, want %d", len(got), got, n)
	}
	return got
}

// request returns the one request that waits and is to be that.
func (d *harness) request(want string) *heldRequest {
	d.t.Helper()
	a := d.requests(1)[0]
	if a.String() != want {
		d.t.Errorf("asked for %v, want %s", a, want)
	}
	return a
}

// saturate has as many requests be under way as may before calls gather, and returns them.
func (d *harness) saturate() []*heldRequest {
	d.t.Helper()
	for n := range client.MaxInFlight {
		d.call(func() error {
			return d.Release(d.t.Context(), lock.Release{Name: fmt.Sprintf("busy-%d", n), LeaseID: leaseID})
		})
	}
	return d.requests(client.MaxInFlight)
}

// call has a call be made that is to succeed.
func (d *harness) call(do func() error) {
	d.all.Go(func() {
		if err := do(); err != nil {
			d.t.Error(err)
		}
	})
	synctest.Wait()
}

// fail has a call be made that is to fail, and returns where its error will be.
func (d *harness) fail(do func() error) <-chan *lock.Error {
	failed := make(chan *lock.Error, 1)
	d.all.Go(func() {
		var e *lock.Error
		if err := do(); !errors.As(err, &e) {
			d.t.Errorf("the call ended with %v", err)
		}
		failed <- e
	})
	synctest.Wait()
	return failed
}

// sleepPast waits for that long, and a moment.
func (d *harness) sleepPast(pause time.Duration) { <-time.After(pause + time.Nanosecond) }

func grantAll(requests []*heldRequest) {
	for _, a := range requests {
		a.grant()
	}
}
