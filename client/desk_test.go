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

// A desk is a way on which every request waits until the test answers it. It lives in
// a bubble of synctest.
type desk struct {
	t *testing.T
	*client.Client
	all     sync.WaitGroup // of the calls
	connect func()         // waits until there is a connection; nil: at once

	mu      sync.Mutex
	waiting []*asked
}

// asked is a request that waits.
type asked struct {
	path   string
	length int64
	items  []asking
	size   int
	res    chan func(*http.Request) (*http.Response, error)
	gone   <-chan struct{}
}

// asking is an item, or what a request of its own asks for.
type asking struct {
	Op, Name, Holder string
	LeaseID          string `json:"lease_id"`
}

func newDesk(t *testing.T, o client.Options) *desk {
	t.Helper()
	d := &desk{t: t}
	o.BaseURL, o.HTTP = "http://paddock.test", &http.Client{Transport: way(d.take)}
	d.Client = open(t, o)
	return d
}

// take has a request wait, or go away with its context.
func (d *desk) take(r *http.Request) (*http.Response, error) {
	if d.connect != nil {
		d.connect()
	}
	a, err := readAsked(r)
	if err != nil {
		d.t.Error(err)
		return nil, err
	}
	d.mu.Lock()
	d.waiting = append(d.waiting, a)
	d.mu.Unlock()
	select {
	case answer := <-a.res:
		return answer(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func readAsked(r *http.Request) (*asked, error) {
	a := &asked{path: r.URL.Path, length: r.ContentLength, gone: r.Context().Done(), res: make(chan func(*http.Request) (*http.Response, error))}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.size = len(text)
	if a.isBatch() {
		var body struct{ Items []asking }
		err = json.Unmarshal(text, &body)
		a.items = body.Items
		return a, err
	}
	one := asking{Op: path.Base(a.path), Name: path.Base(path.Dir(a.path))}
	err = json.Unmarshal(text, &one)
	a.items = []asking{one}
	return a, err
}

func (a *asked) isBatch() bool { return a.path == "/v1/batch" }

// String tells what was asked for: a*b for a batch of a and b.
func (a *asked) String() string {
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
func (a *asked) answer(status int, contentType, body string) {
	a.res <- func(r *http.Request) (*http.Response, error) { return reply(r, status, contentType, body), nil }
}

// grant answers as the service would, each item with a token of its own.
func (a *asked) grant() {
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

func (a asking) granted(token int) (int, string) {
	status := map[string]int{"acquire": 201, "renew": 200, "release": 204}[a.Op]
	if a.Op == "release" {
		return status, ""
	}
	return status, fmt.Sprintf(`{"name":%q,"lease_id":%q,"fencing_token":%d,"slot":0,"mode":"exclusive","holder":%q,"ttl_ms":30000,
		"grace_ms":0,"expires_in_ms":29000,"acquired_at":"2026-01-02T03:04:05Z","expires_at":"2026-01-02T03:04:35Z"}`,
		a.Name, a.LeaseID, token, a.Holder)
}

// pending returns the requests that wait when nothing moves any more, and forgets them.
func (d *desk) pending() []*asked {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting := d.waiting
	d.waiting = nil
	return waiting
}

// requests returns the requests that wait, which are to be so many.
func (d *desk) requests(n int) []*asked {
	d.t.Helper()
	got := d.pending()
	if len(got) != n {
		d.t.Fatalf("%d requests wait: %v, want %d", len(got), got, n)
	}
	return got
}

// request returns the one request that waits and is to be that.
func (d *desk) request(want string) *asked {
	d.t.Helper()
	a := d.requests(1)[0]
	if a.String() != want {
		d.t.Errorf("asked for %v, want %s", a, want)
	}
	return a
}

// busy has as many requests be under way as may before calls gather, and returns them.
func (d *desk) busy() []*asked {
	d.t.Helper()
	for n := range client.FlightsAtOnce {
		d.call(func() error {
			return d.Release(d.t.Context(), lock.Release{Name: fmt.Sprintf("busy-%d", n), LeaseID: leaseID})
		})
	}
	return d.requests(client.FlightsAtOnce)
}

// call has a call be made that is to succeed.
func (d *desk) call(do func() error) {
	d.all.Go(func() {
		if err := do(); err != nil {
			d.t.Error(err)
		}
	})
	synctest.Wait()
}

// fail has a call be made that is to fail, and returns where its error will be.
func (d *desk) fail(do func() error) <-chan *lock.Error {
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

// later waits for that long, and a moment.
func (d *desk) later(pause time.Duration) { <-time.After(pause + time.Nanosecond) }

func grantAll(requests []*asked) {
	for _, a := range requests {
		a.grant()
	}
}
