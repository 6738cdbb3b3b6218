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

var waiting = lock.Acquire{Name: "jobs:nightly", LeaseID: leaseID, Holder: "worker-1", Wait: lock.MaxWait}

// A queueServer is a server at which acquires wait until their clients are gone, and
// releases are answered so.
type queueServer struct {
	joined   chan struct{} // an acquire waits
	left     chan struct{} // the server has noticed that its client is gone
	released chan string   // the body of a release
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

// cancelAcquire has a call wait and its context end, and returns the call's error.
func (l *queueServer) cancelAcquire(t *testing.T, c *client.Client) *lock.Error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-l.joined
		cancel(errEnough)
	}()
	_, err := c.Acquire(ctx, waiting)
	expect(t, "Acquire", err, lock.ErrUnknownOutcome)
	if !errors.Is(err, errEnough) {
		t.Errorf("the error %v does not hold the context's cause", err)
	}
	var e *lock.Error
	errors.As(err, &e)
	<-l.left
	return e
}

func TestACanceledWaitGivesUpItsPlace(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]http.HandlerFunc{
		"which it has, or the lease that came": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"which the server had taken already": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			if _, err := io.WriteString(w, problem(`"code":"lease_lost"`)); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, c := newQueueServer(t, release)
			e := l.cancelAcquire(t, c)
			if got := strings.TrimSpace(<-l.released); got != `{"lease_id":"`+leaseText+`"}` {
				t.Errorf("released %s", got)
			}
			if again := len(l.released); again != map[string]int{"which the server had taken already": 3}[name] {
				t.Errorf("released %d times more", again) // it may have overtaken the acquire
			}
			if !strings.Contains(e.Detail, "was given up") || strings.Contains(e.Detail, "nobody answers") {
				t.Errorf("the error says %q", e.Detail)
			}
		})
	}
}

func TestAPlaceThatCannotBeGivenUpIsReported(t *testing.T) {
	t.Parallel()
	l, c := newQueueServer(t, http.NotFound)
	e := l.cancelAcquire(t, c)
	if !strings.Contains(e.Detail, "nobody answers") || !errors.Is(e.Cause, lock.ErrUnavailable) {
		t.Errorf("the error says %q because of %v", e.Detail, e.Cause)
	}
}

func TestACallThatDidNotWaitSendsNoRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		wait time.Duration
	}{
		"a try whose context ends":                     {context.WithCancel, 0},
		"a call that waits, its connection lost":       {nil, time.Second},
		"a call whose context was over from the start": {withEndedContext, time.Second},
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
			a := waiting
			a.Wait = c.wait
			if _, err := sender.Acquire(ctx, a); err == nil {
				t.Error("nothing was taken for a grant")
			}
		})
	}
}

// withEndedContext returns a context that is over.
func withEndedContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, cancel
}
