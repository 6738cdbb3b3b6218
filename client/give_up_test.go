package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

var waitingAcquire = lock.Acquire{Locks: lock.One("jobs:nightly"), LeaseID: leaseID, Holder: "worker-1", Wait: lock.MaxWait}

// A queueServer holds acquires until their clients disconnect, and answers releases with the
// given handler.
type queueServer struct {
	joined   chan struct{} // an acquire is waiting
	left     chan struct{} // the server has noticed the disconnect
	released chan string   // bodies of releases
}

func newQueueServer(t *testing.T, release http.HandlerFunc) (*queueServer, *client.Client) {
	t.Helper()
	l := &queueServer{joined: make(chan struct{}, 1), left: make(chan struct{}, 1), released: make(chan string, 8)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(r.URL.Path, "/release") {
			l.released <- string(body)
			release(w, r)
			return
		}
		l.joined <- struct{}{}
		<-r.Context().Done()
		l.left <- struct{}{}
	}))
	t.Cleanup(s.Close)
	return l, open(t, client.Options{BaseURL: s.URL})
}

// cancelAcquire starts an acquire that waits, cancels its context and returns its error.
func (s *queueServer) cancelAcquire(t *testing.T, c *client.Client, a lock.Acquire) *lock.Error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-s.joined
		cancel(errCanceled)
	}()
	_, err := c.Acquire(ctx, a)
	expect(t, "Acquire", err, lock.ErrUnknownOutcome)
	if !errors.Is(err, errCanceled) {
		t.Errorf("the error %v does not hold the context's cause", err)
	}
	var e *lock.Error
	errors.As(err, &e)
	<-s.left
	return e
}

func TestACanceledWaitGivesUpItsPlace(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]http.HandlerFunc{
		"in the queue, or its lease": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Paddock-Api", "v1")
			w.WriteHeader(http.StatusNoContent)
		},
		"which the server has removed already": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Paddock-Api", "v1")
			w.WriteHeader(http.StatusConflict)
			if _, err := io.WriteString(w, problem(`"code":"lease_lost"`)); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, c := newQueueServer(t, release)
			e := l.cancelAcquire(t, c, waitingAcquire)
			if got := strings.TrimSpace(<-l.released); got != `{"lease_id":"`+leaseText+`"}` {
				t.Errorf("released %s", got)
			}
			if again := len(l.released); again != map[string]int{"which the server has removed already": 3}[name] {
				t.Errorf("released %d more times", again) // the release may have overtaken the acquire
			}
			if !strings.Contains(e.Detail, "was released") || strings.Contains(e.Detail, "got no answer") {
				t.Errorf("the error says %q", e.Detail)
			}
		})
	}
}

func TestACanceledWaitForASetGivesUpItsPlaces(t *testing.T) {
	t.Parallel()
	l, c := newQueueServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Paddock-Api", "v1")
		w.WriteHeader(http.StatusNoContent)
	})
	a := transfer()
	a.Wait = lock.MaxWait
	e := l.cancelAcquire(t, c, a)
	got := strings.TrimSpace(<-l.released)
	if got != `{"lease_id":"`+leaseText+`","names":["b","a"]}` || !strings.Contains(e.Detail, "was released") {
		t.Errorf("released %s, and the error says %q", got, e.Detail)
	}
}

func TestAPlaceThatCannotBeGivenUpIsReported(t *testing.T) {
	t.Parallel()
	l, c := newQueueServer(t, http.NotFound)
	e := l.cancelAcquire(t, c, waitingAcquire)
	if !strings.Contains(e.Detail, "got no answer") || !errors.Is(e.Cause, lock.ErrUnavailable) {
		t.Errorf("the error says %q because of %v", e.Detail, e.Cause)
	}
}

func TestACallThatDidNotWaitSendsNoRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		wait time.Duration
	}{
		"a canceled try": {context.WithCancel, 0},
		"a waiting call that loses its connection": {nil, time.Second},
		"a call with an ended context":             {withEndedContext, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, end := t.Context(), func() {}
			if c.ctx != nil {
				ctx, end = c.ctx(ctx)
			}
			sender := over(t, func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/release") {
					t.Error("a release was sent")
				}
				end()
				return nil, errors.New("no answer")
			})
			a := waitingAcquire
			a.Wait = c.wait
			if _, err := sender.Acquire(ctx, a); err == nil {
				t.Error("Acquire returned a grant without an answer")
			}
		})
	}
}

// withEndedContext returns a canceled context.
func withEndedContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, cancel
}
