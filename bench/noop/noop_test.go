package noop

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/bench/system"
)

func TestAnswersAreLikePaddocks(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&handler{})
	defer server.Close()
	s := &System{address: strings.TrimPrefix(server.URL, "http://")}
	c, err := s.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	for range 3 {
		lease, err := c.Acquire(t.Context(), "jobs:nightly", false)
		if err != nil {
			t.Fatal(err)
		}
		if lease.Token() <= last {
			t.Errorf("token %d came after %d", lease.Token(), last)
		}
		last = lease.Token()
		if err := errors.Join(lease.Renew(t.Context()), lease.Release(t.Context())); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Acquire(t.Context(), "jobs:nightly", true); !errors.Is(err, system.ErrUnsupported) {
		t.Errorf("an acquire that waits: %v", err)
	}
	if _, ok := c.(system.Batcher); ok {
		t.Error("the client supports batches")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
