package server_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// endlessService returns a fake whose waiting calls end only when their context does.
func endlessService(ended func(time.Duration, error)) *fake {
	wait := func(ctx context.Context, d time.Duration) error {
		<-ctx.Done()
		ended(d, ctx.Err())
		return &lock.Error{Code: lock.ErrUnavailable, Cause: ctx.Err()}
	}
	return &fake{
		acquire: func(ctx context.Context, a lock.Acquire) (lock.Grant, error) { return lock.Grant{}, wait(ctx, a.Wait) },
		watch:   func(ctx context.Context, w paddock.Watch) (lock.Lock, error) { return lock.Lock{}, wait(ctx, w.Wait) },
		events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
			if q.Wait == 0 {
				return paddock.Page[lock.Event]{Next: "0"}, nil
			}
			return paddock.Page[lock.Event]{}, wait(ctx, q.Wait)
		},
	}
}

// waitingRequests returns the calls that can wait, with a wait of 50 s.
func (s harness) waitingRequests() []*http.Request {
	look := s.request(http.MethodGet, "/v1/locks/a?wait_ms=50000", "")
	look.Header.Set("If-None-Match", tags(`W/"<0>"`))
	return []*http.Request{
		s.request(http.MethodPost, acquirePath, `{"holder": "a", "wait_ms": 50000}`), look,
		s.request(http.MethodGet, "/v1/events?wait_ms=50000", ""),
	}
}

func TestRequestTimeoutStartsAfterTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, end := servePiped(t, server.Options{Locks: endlessService(func(wait time.Duration, err error) {
			if wait != lock.MaxWait || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("waiting for %v ended with %v", wait, err)
			}
		})})
		for _, r := range s.waitingRequests() {
			start := time.Now()
			s.do(r).want(t, http.StatusServiceUnavailable, map[string]any{"code": "unavailable"})
			if took := time.Since(start); took != lock.MaxWait+server.DefaultRequestTimeout {
				t.Errorf("%s %s was answered after %v", r.Method, r.URL, took)
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestLongWaitIsNotTakenForALostClient waits longer than the read and write timeouts.
func TestLongWaitIsNotTakenForALostClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wait := func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s, _, end := servePiped(t, server.Options{Locks: &fake{
			acquire: func(ctx context.Context, a lock.Acquire) (lock.Grant, error) { return grantOf(a), wait(ctx, a.Wait) },
			watch: func(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
				return lock.Record{Name: w.Name}.Lock(instant), wait(ctx, w.Wait)
			},
			events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
				return paddock.Page[lock.Event]{Next: "7"}, wait(ctx, q.Wait)
			},
		}})
		for i, r := range s.waitingRequests() {
			start := time.Now()
			s.do(r).want(t, []int{http.StatusCreated, http.StatusNotModified, http.StatusOK}[i], nil)
			if took := time.Since(start); took != lock.MaxWait {
				t.Errorf("%s %s was answered after %v", r.Method, r.URL, took)
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestListEventsWaits(t *testing.T) {
	t.Parallel()
	h, asked := new(fakeEvents), make(chan paddock.EventQuery, 3)
	h.add(5)
	s := serve(t, server.Options{Locks: &fake{events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
		asked <- q
		return h.events(ctx, q)
	}}})
	s.get("/v1/events?cursor=now").want(t, http.StatusOK, map[string]any{"next_cursor": "5", "gap": nil})
	if q := <-asked; q.Cursor != paddock.CursorNow || q.Wait != 0 {
		t.Errorf("asked for %+v", q)
	}
	answered := make(chan answer, 1)
	go func() { answered <- s.get("/v1/events?cursor=5&wait_ms=50000") }()
	if q := <-asked; q.Wait != lock.MaxWait {
		t.Errorf("asked for %+v", q)
	}
	h.add(1)
	got := <-answered
	got.want(t, http.StatusOK, map[string]any{"next_cursor": "6"})
	if link := got.Header.Get("Link"); link != `<?cursor=6&wait_ms=50000>; rel="next"` {
		t.Errorf("Link: %s", link)
	}
	e := got.body["events"].([]any)[0].(map[string]any)
	if _, shown := e["fencing_token"]; e["kind"] != "dequeued" || e["place"] != 6.0 || e["reason"] != "r" || shown {
		t.Errorf("event %v", e)
	}
	h.prune()
	s.get("/v1/events?cursor=3").want(t, http.StatusOK, map[string]any{"next_cursor": "6", "gap": true})
}

// TestDisconnectCancelsTheCall closes connections while their calls wait.
func TestDisconnectCancelsTheCall(t *testing.T) {
	t.Parallel()
	asked, ended := make(chan struct{}), make(chan error)
	f := endlessService(func(_ time.Duration, err error) { ended <- err })
	acquire, watch, events := f.acquire, f.watch, f.events
	f.acquire = func(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
		asked <- struct{}{}
		return acquire(ctx, a)
	}
	f.watch = func(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
		asked <- struct{}{}
		return watch(ctx, w)
	}
	f.events = func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
		if q.Wait > 0 {
			asked <- struct{}{}
		}
		return events(ctx, q)
	}
	s := serve(t, server.Options{Locks: f, RequestTimeout: time.Hour})
	for _, r := range append(s.waitingRequests(), s.request(http.MethodGet, "/v1/events/stream", "")) {
		c := s.dial()
		if err := r.Write(c); err != nil {
			t.Fatal(err)
		}
		<-asked
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s %s: the context ended with %v", r.Method, r.URL, err)
		}
	}
}

// TestShutdownEndsWaitingCalls checks that waiting calls and streams are answered at once, and places are kept.
func TestShutdownEndsWaitingCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const delay = 5 * time.Second
		drained, asked := make(chan struct{}), make(chan struct{}, 1)
		f := &fake{acquire: func(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
			asked <- struct{}{}
			select {
			case <-drained:
				return lock.Grant{}, &lock.Error{Code: lock.ErrUnavailable}
			case <-ctx.Done():
				return lock.Grant{}, ctx.Err()
			}
		}, events: new(fakeEvents).events}
		s, _, end := servePiped(t, server.Options{Locks: f, DrainDelay: delay, Drain: func() { close(drained) }})
		stream, answered := s.stream("/v1/events/stream", ""), make(chan answer, 1)
		stream.want(synced("0"))
		go func() { answered <- s.post(acquirePath, `{"holder": "a", "wait_ms": 50000}`) }()
		<-asked
		start, ended := time.Now(), make(chan error, 1)
		go func() { ended <- end() }()
		synctest.Wait()
		s.get("/readyz").want(t, http.StatusServiceUnavailable, nil)
		s.get("/livez").want(t, http.StatusOK, nil)
		got := <-answered
		got.want(t, http.StatusServiceUnavailable, map[string]any{"code": "unavailable", "retry_after_ms": 1000.0})
		if took := time.Since(start); took != delay {
			t.Errorf("answered after %v", took)
		}
		stream.want(message{comment: "this replica is shutting down; reconnect"}, message{ended: true})
		if err := <-ended; err != nil || time.Since(start) > delay+time.Second {
			t.Errorf("ended after %v with %v", time.Since(start), err)
		}
	})
}
