package integration_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// TestMain runs many tests at once, because these do little else than wait for leases and sessions to end.
func TestMain(m *testing.M) { os.Exit(pgtest.M{M: m, Parallel: 16}.Run()) }

func TestClientConforms(t *testing.T) {
	t.Parallel()
	c := replica.Client(t, pgtest.URL(t))
	locktest.Run(t, c)
}

func TestBatchedClientConforms(t *testing.T) {
	t.Parallel()
	c := locktest.Batched(replica.Client(t, pgtest.URL(t)))
	locktest.Run(t, c)
}

// A countingTransport counts requests.
type countingTransport struct{ requests atomic.Int64 }

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

// countingClient returns a client of the server and its number of requests.
func countingClient(t *testing.T, url string) (*client.Client, *atomic.Int64) {
	t.Helper()
	transport := new(countingTransport)
	return replica.Connect(t, client.Options{BaseURL: url, HTTP: &http.Client{Transport: transport}}), &transport.requests
}

func TestManyCallsShareFewRequests(t *testing.T) {
	t.Parallel()
	c, requests := countingClient(t, replica.Start(t, pgtest.URL(t)))
	const callers, rounds = 64, 10
	var all sync.WaitGroup
	var tokens sync.Map
	for i := range callers {
		all.Go(func() {
			name := fmt.Sprintf("many:%d", i/2) // one of two callers finds the lock held
			for range rounds {
				g, err := c.Acquire(t.Context(), lock.Acquire{Name: name, Holder: fmt.Sprint(i)})
				var held *lock.Error
				switch {
				case errors.As(err, &held) && held.Code == lock.ErrHeld && held.Holder == fmt.Sprint(i^1):
					continue
				case err != nil:
					t.Errorf("caller %d: %v", i, err)
					return
				case g.Name != name || g.Holder != fmt.Sprint(i):
					t.Errorf("caller %d got a grant of %s to %s", i, g.Name, g.Holder)
				}
				if _, twice := tokens.Swap(g.Token, true); twice {
					t.Errorf("the token %d was granted twice", g.Token)
				}
				renewed, err := c.Renew(t.Context(), lock.Renew{Name: name, LeaseID: g.ID})
				if err != nil || renewed.Token != g.Token {
					t.Errorf("renewed to %+v, %v", renewed, err)
				}
				if err := c.Release(t.Context(), lock.Release{Name: name, LeaseID: g.ID}); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	granted := 0
	tokens.Range(func(any, any) bool { granted++; return true })
	calls := int64(callers*rounds + 2*granted)
	if n := requests.Load(); n > calls/4 {
		t.Errorf("%d calls used %d requests", calls, n)
	}
	t.Logf("%d calls used %d requests", calls, requests.Load())
}
