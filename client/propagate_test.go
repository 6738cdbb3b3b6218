package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

type traceKey struct{}

// TestPropagateAddsHeadersOfTheCall: each request has what its own call brings along, and the client's headers win.
func TestPropagateAddsHeadersOfTheCall(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(s.Close)
	locks, err := client.New(client.Options{BaseURL: s.URL, Key: "pk_abcdefgh_secret", NoCoalesce: true,
		Propagate: func(ctx context.Context, header http.Header) {
			header.Set("Traceparent", ctx.Value(traceKey{}).(string))
			header.Set("Authorization", "Bearer of another")
		}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two"} {
		ctx := context.WithValue(t.Context(), traceKey{}, want)
		if _, err := locks.Acquire(ctx, lock.Acquire{Locks: lock.One("a"), Holder: "h"}); !errors.As(err, new(*lock.Error)) {
			t.Errorf("the error is %v", err)
		}
		header := <-seen
		if header.Get("Traceparent") != want || header.Get("Authorization") != "Bearer pk_abcdefgh_secret" {
			t.Errorf("the headers are %v, want the trace %s", header, want)
		}
	}
}
