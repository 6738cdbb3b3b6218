package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

var errEnough = errors.New("enough")

func acquireIn(ctx context.Context, c *client.Client) error {
	_, err := c.Acquire(ctx, lock.Acquire{Name: "jobs:nightly", LeaseID: leaseID, Holder: "worker-1"})
	return err
}

func lookIn(ctx context.Context, c *client.Client) error {
	_, err := c.Lock(ctx, "jobs:nightly")
	return err
}

func TestAContextThatIsOverSendsNothing(t *testing.T) {
	t.Parallel()
	c := over(t, func(*http.Request) (*http.Response, error) {
		t.Error("something was sent")
		return nil, errors.New("unexpected")
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	err := acquireIn(ctx, c)
	expect(t, "Acquire", err, lock.ErrUnavailable)
	if !errors.Is(err, errEnough) {
		t.Errorf("the error %v does not hold the context's cause", err)
	}
}

func TestAContextThatEndsWhileTheServerThinks(t *testing.T) {
	t.Parallel()
	thinking := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		thinking <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	c := open(t, client.Options{BaseURL: s.URL})
	for want, call := range map[lock.Code]func(context.Context, *client.Client) error{
		lock.ErrUnknownOutcome: acquireIn,
		lock.ErrUnavailable:    lookIn,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-thinking
			cancel()
		}()
		err := call(ctx, c)
		expect(t, "a call", err, want)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error %v does not hold context.Canceled", err)
		}
	}
}

func TestAContextThatEndsWhileDialingLeftNothingBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	c := open(t, client.Options{BaseURL: "http://paddock.test", HTTP: &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			cancel()
			<-over
			return nil, errors.New("nobody waits for this connection any more")
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
			expect(t, call, err, lock.ErrUnknownOutcome) // it may lead to a proxy's error page
		}
		for call, err := range reads(t, c) {
			expect(t, call, err, lock.ErrUnavailable)
		}
	}
	if reached.Load() {
		t.Error("a redirect was followed")
	}
}
