package client_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// A waitCall is a call in testdata/waits.json, which says what its members mean.
type waitCall struct {
	Later  milliseconds `json:"later_ms"`
	Ready  string       `json:"ready"`
	To     string       `json:"to"`
	Wait   milliseconds `json:"wait_ms"`
	Gets   string       `json:"gets"`
	After  milliseconds `json:"after_ms"`
	Beside int          `json:"beside"`
}

type milliseconds int64

func (m milliseconds) duration() time.Duration { return time.Duration(m) * time.Millisecond }

// TestWaits runs the cases that the clients for all languages have in common.
func TestWaits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/waits.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Cases []struct {
			Name      string
			Addresses int
			Calls     []waitCall
		}
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runWaits(t, c.Addresses, c.Calls) })
		})
	}
}

func runWaits(t *testing.T, addresses int, calls []waitCall) {
	var urls, want []string
	for i := range addresses {
		urls = append(urls, "http://"+string(rune('a'+i)))
	}
	for _, c := range calls {
		want = append(want, fmt.Sprintf("%s waits %d ms", c.To, c.Wait))
	}
	w := &waiter{left: calls}
	w.Client = open(t, client.Options{BaseURL: strings.Join(urls, ","), HTTP: &http.Client{Transport: roundTripFunc(w.send)}})
	for len(w.left) > 0 {
		time.Sleep(w.left[0].Later.duration())
		w.ready = cmp.Or(w.left[0].Ready, w.ready)
		w.wait("jobs:nightly")
		synctest.Wait() // until the earlier addresses were asked
	}
	if !slices.Equal(w.sent, want) {
		t.Errorf("the calls were\n%s\nwant\n%s", strings.Join(w.sent, "\n"), strings.Join(want, "\n"))
	}
}

// A waiter makes the calls of a case, and gives them their outcomes.
type waiter struct {
	*client.Client

	ready  string
	mu     sync.Mutex
	left   []waitCall
	beside map[string]waitCall // of other waits, by their lock
	sent   []string
}

// wait makes a call that waits; one more at another address may be a part of it.
func (w *waiter) wait(name string) {
	q := paddock.EventQuery{Names: []string{name}, Cursor: paddock.CursorNow, Wait: 10 * time.Second}
	_, _ = w.Events(context.Background(), q) // what it sends counts
}

func (w *waiter) send(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/readyz" {
		if strings.Contains(w.ready, r.URL.Host) {
			return reply(r, http.StatusOK, "application/json", "{}"), nil
		}
		return nil, errRefused
	}
	call, others := w.next(r)
	for _, name := range others {
		go w.wait(name)
	}
	began := time.Now()
	res, err := call.outcome(r)
	if took := time.Since(began); call.Gets == "silent" && took != call.After.duration() {
		w.sent = append(w.sent, fmt.Sprintf("it counts as silent after %v", took))
	}
	return res, err
}

// next returns the call with the outcome of the request, and the locks of the waits beside it.
func (w *waiter) next(r *http.Request) (call waitCall, others []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := r.URL.Query().Get("lock")
	if call, ok := w.beside[name]; ok {
		delete(w.beside, name)
		return call, nil
	}
	if name != "jobs:nightly" || len(w.left) == 0 {
		return waitCall{Gets: "answer"}, nil
	}
	call, w.left, w.beside = w.left[0], w.left[1:], map[string]waitCall{}
	for i := range call.Beside {
		name := fmt.Sprintf("beside:%d:%d", len(w.left), i)
		w.beside[name] = call
		others = append(others, name)
	}
	w.sent = append(w.sent, fmt.Sprintf("%s waits %s ms", r.URL.Host, r.URL.Query().Get("wait_ms")))
	return call, others
}

func (c waitCall) outcome(r *http.Request) (*http.Response, error) {
	if c.Gets == "silent" {
		return freezes(r)
	}
	time.Sleep(c.After.duration())
	switch c.Gets {
	case "answer":
		return reply(r, http.StatusOK, "application/json", `{"events":[{"id":42,"kind":"granted","lock":"a"}],"next_cursor":"42"}`), nil
	case "broken":
		return nil, io.ErrUnexpectedEOF
	case "refused":
		httptrace.ContextClientTrace(r.Context()).GetConn("")
		return nil, errRefused
	}
	status, err := strconv.Atoi(c.Gets)
	if err != nil {
		return nil, err
	}
	res, err := refusing(status, lock.ErrUnavailable)(r)
	if status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
		res.Header.Del("Paddock-Api")
	}
	return res, err
}
