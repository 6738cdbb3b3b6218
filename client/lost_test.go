package client_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/freeport"
	"github.com/paddock-lock/paddock/lock"
)

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"connection closed before the answer":  "",
		"connection closed within the headers": "HTTP/1.1 201 Created\r\nContent-Ty",
		"connection closed within the body":    "HTTP/1.1 201 Created\r\nPaddock-Api: v1\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n" + leaseJSON,
		"connection closed within a chunk":     "HTTP/1.1 200 OK\r\nPaddock-Api: v1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n{",
		"a server that does not speak HTTP":    "SSH-2.0-OpenSSH_9.2 " + leaseText + "\r\n",
		"an incomplete problem document":       "HTTP/1.1 409 Conflict\r\nPaddock-Api: v1\r\nContent-Type: application/problem+json\r\nContent-Length: 99\r\n\r\n{",
		"an incomplete page of a proxy":        "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\n<",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			c := open(t, client.Options{BaseURL: startCuttingServer(t, &asked, raw)})
			changed := changes(t, c)
			for call, err := range changed {
				expectLost(t, call, err, lock.ErrUnknownOutcome)
			}
			if n := int(asked.Load()); n != len(changed) {
				t.Errorf("%d changes caused %d requests", len(changed), n)
			}
			for call, err := range reads(t, c) {
				expectLost(t, call, err, lock.ErrUnavailable)
			}
		})
	}
}

// expectLost is expect, except that the cause may quote the peer.
func expectLost(t *testing.T, call string, err error, code lock.Code) {
	t.Helper()
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != code || e.Cause == nil {
		t.Errorf("%s: the error is %v, want the code %s and a cause", call, err, code)
	} else if strings.Contains(err.Error(), leaseText) {
		t.Errorf("%s: the error shows a lease_id: %v", call, err)
	}
}

// startCuttingServer returns the address of a server that reads a request, writes raw, and
// closes the connection.
func startCuttingServer(t *testing.T, asked *atomic.Int32, raw string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				asked.Add(1)
			}
			_, writeErr := conn.Write([]byte(raw))
			if err := errors.Join(writeErr, conn.Close()); err != nil {
				t.Errorf("the cutting server: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-stopped
	})
	return "http://" + l.Addr().String()
}

func TestACallThatWasNeverSentIsUnavailable(t *testing.T) {
	t.Parallel()
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log each refused handshake
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	for name, o := range map[string]client.Options{
		"no listener":              {BaseURL: "http://" + closedAddress(t)},
		"an untrusted certificate": {BaseURL: tlsServer.URL, HTTP: &http.Client{Transport: quietTLS()}},
		"a dialer that fails": {BaseURL: "http://paddock.test", HTTP: &http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialer failed") },
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, o)
			for call, err := range changes(t, c) {
				expect(t, call, err, lock.ErrUnavailable)
			}
			for call, err := range reads(t, c) {
				expect(t, call, err, lock.ErrUnavailable)
			}
		})
	}
}

func quietTLS() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
}

// closedAddress returns an address without a listener.
func closedAddress(t *testing.T) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return freeport.Address(port)
}

func TestAnErrorWithoutConnectionTraceIsUnknownOutcome(t *testing.T) {
	t.Parallel()
	c := over(t, func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	})
	_, err := acquire(c, t)
	expect(t, "Acquire", err, lock.ErrUnknownOutcome)
}

var errCanceled = errors.New("canceled by the test")

func acquireIn(ctx context.Context, c *client.Client) error {
	_, err := c.Acquire(ctx, lock.Acquire{Locks: lock.One("jobs:nightly"), LeaseID: leaseID, Holder: "worker-1"})
	return err
}

func readIn(ctx context.Context, c *client.Client) error {
	_, err := c.Lock(ctx, "jobs:nightly")
	return err
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	c := over(t, func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, errors.New("unexpected")
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCanceled)
	err := acquireIn(ctx, c)
	expect(t, "Acquire", err, lock.ErrUnavailable)
	if !errors.Is(err, errCanceled) {
		t.Errorf("the error %v does not hold the context's cause", err)
	}
}

func TestContextEndsWhileTheServerIsWorking(t *testing.T) {
	t.Parallel()
	working := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		working <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	c := open(t, client.Options{BaseURL: s.URL})
	for want, call := range map[lock.Code]func(context.Context, *client.Client) error{
		lock.ErrUnknownOutcome: acquireIn,
		lock.ErrUnavailable:    readIn,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-working
			cancel()
		}()
		err := call(ctx, c)
		expect(t, "a call", err, want)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error %v does not hold context.Canceled", err)
		}
	}
}

func TestContextEndsWhileDialing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	c := open(t, client.Options{BaseURL: "http://paddock.test", HTTP: &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			cancel()
			<-over
			return nil, errors.New("the caller has given up")
		},
	}}})
	expect(t, "Acquire", acquireIn(ctx, c), lock.ErrUnavailable)
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		t.Cleanup(s.Close)
		c := open(t, client.Options{BaseURL: s.URL, HTTP: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
		}})
		for call, err := range changes(t, c) {
			expect(t, call, err, lock.ErrUnknownOutcome) // the target may be a proxy's error page
		}
		for call, err := range reads(t, c) {
			expect(t, call, err, lock.ErrUnavailable)
		}
	}
	if reached.Load() {
		t.Error("a redirect was followed")
	}
}
