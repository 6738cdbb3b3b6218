package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// A waitingService is a Service that answers an acquire when the test releases it, or when the request's context ends.
type waitingService struct{ asked, answer chan struct{} }

func newWaitingService() waitingService {
	return waitingService{make(chan struct{}, 1), make(chan struct{})}
}

func (w waitingService) acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	w.asked <- struct{}{}
	select {
	case <-w.answer:
		return grantOf(a), nil
	case <-ctx.Done():
		return lock.Grant{}, &lock.Error{Code: lock.ErrUnknownOutcome, Cause: ctx.Err()}
	}
}

func TestServeEndsGracefully(t *testing.T) {
	t.Parallel()
	w := newWaitingService()
	h := server.New(server.Options{Locks: &fake{acquire: w.acquire}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served, answered := make(chan error, 1), make(chan answer, 1)
	go func() { served <- h.Serve(ctx, l) }()
	s := harness{t: t, url: "http://" + l.Addr().String(), client: &http.Client{Transport: contract{t, new(http.Transport)}}}
	s.get("/readyz").want(t, http.StatusOK, nil)
	go func() { answered <- s.post(acquirePath, `{"holder": "a"}`) }()
	<-w.asked
	end()
	untilRefused(t, l.Addr())
	probe := httptest.NewRecorder()
	h.ServeHTTP(probe, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if probe.Code != http.StatusServiceUnavailable || !strings.Contains(probe.Body.String(), "shutting down") {
		t.Errorf("ready: %d %s", probe.Code, probe.Body)
	}
	close(w.answer)
	got := <-answered
	got.want(t, http.StatusCreated, nil)
	if err := <-served; err != nil {
		t.Errorf("Serve returned %v", err)
	}
}

// untilRefused returns once connections to the address are refused.
func untilRefused(t *testing.T, address net.Addr) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		c, err := new(net.Dialer).DialContext(ctx, address.Network(), address.String())
		if err != nil {
			break
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if ctx.Err() != nil {
		t.Fatal("connections are still accepted")
	}
}

func TestServeReturnsTheListenersError(t *testing.T) {
	t.Parallel()
	p := newPipeListener()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.New(server.Options{}).Serve(t.Context(), p); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve returned %v", err)
	}
}

// TestShutdownIsBounded has a request that ends when its context does, and one that ignores it.
func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	for deaf, want := range map[bool]time.Duration{false: server.MaxDrain, true: server.MaxDrain + server.DrainMargin} {
		synctest.Test(t, func(t *testing.T) {
			w := newWaitingService()
			acquire := w.acquire
			if deaf {
				acquire = func(_ context.Context, a lock.Acquire) (lock.Grant, error) { return w.acquire(t.Context(), a) }
			}
			s, _, end := servePiped(t, server.Options{Locks: &fake{acquire: acquire}, RequestTimeout: time.Hour})
			status := make(chan int, 1)
			go func() {
				res, err := s.client.Do(s.request(http.MethodPost, acquirePath, `{"holder": "a"}`))
				if err != nil {
					status <- 0
					return
				}
				status <- res.StatusCode
				_ = res.Body.Close()
			}()
			<-w.asked
			start := time.Now()
			if err := end(); err != nil || time.Since(start) < want || time.Since(start) > want+time.Second {
				t.Errorf("deaf %t: ended after %v with %v", deaf, time.Since(start), err)
			}
			if got := <-status; (got == 0) != deaf || !deaf && got != http.StatusServiceUnavailable {
				t.Errorf("deaf %t: answered %d", deaf, got)
			}
			close(w.answer)
		})
	}
}

func TestSlowServiceIsNotTakenForALostClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		long := func(ctx context.Context) error {
			select {
			case <-time.After(3 * server.ReadTimeout):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s, _, end := servePiped(t, server.Options{RequestTimeout: time.Minute, Ready: long, Locks: &fake{
			acquire: func(ctx context.Context, a lock.Acquire) (lock.Grant, error) { return grantOf(a), long(ctx) },
		}})
		s.post(acquirePath, `{"holder": "a"}`).want(t, http.StatusCreated, nil)
		s.get("/readyz").want(t, http.StatusOK, nil)
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestFailedHandshakesDoNotFloodTheLog checks that they are logged at Debug.
func TestFailedHandshakesDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	log := new(proctest.Transcript)
	h := server.New(server.Options{Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, tls.NewListener(plain, &tls.Config{MinVersion: tls.VersionTLS12})) }()
	c, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("no handshake at all\n")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c) // the server closes the connection after logging
	end()
	if err := errors.Join(c.Close(), <-served); err != nil {
		t.Error(err)
	}
	text := log.String()
	if !strings.Contains(text, "http: TLS handshake error") || strings.Count(text, `"level":"DEBUG"`) != strings.Count(text, "\n") {
		t.Errorf("logged:\n%s", text)
	}
}
