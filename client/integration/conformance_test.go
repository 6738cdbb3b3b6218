package integration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// replica returns a client of a new server on the database.
func replica(t *testing.T, databaseURL string) *client.Client {
	t.Helper()
	return open(t, client.Options{BaseURL: served(t, databaseURL)})
}

func open(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// served starts a server on the database and returns its base URL.
func served(t *testing.T, databaseURL string) string {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	locks, err := store.Open(t.Context(), databaseURL, store.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	s := httptest.NewServer(server.New(server.Options{Locks: locks, Ready: locks.Ready, Log: log}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestClientConforms(t *testing.T) {
	t.Parallel()
	c := replica(t, pgtest.URL(t))
	locktest.Run(t, func(*testing.T) lock.Service { return c })
}

func TestBatchedClientConforms(t *testing.T) {
	t.Parallel()
	c := locktest.Batched(replica(t, pgtest.URL(t)))
	locktest.Run(t, func(*testing.T) lock.Service { return c })
}

// TestClientWithAKeyConforms uses an in-memory service and a key that permits everything.
func TestClientWithAKeyConforms(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	mine, secret, err := access.Issue("ci", access.Admin, nil, time.Time{})
	if err = errors.Join(err, access.Add(path, mine)); err != nil {
		t.Fatal(err)
	}
	keys, err := access.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	locks := access.Guard(memlock.New().Replica(1), access.Limits{})
	s := httptest.NewServer(server.New(server.Options{Locks: locks, Keys: keys}))
	t.Cleanup(s.Close)
	c := open(t, client.Options{BaseURL: s.URL, Key: secret})
	locktest.Run(t, func(*testing.T) lock.Service { return c })
}

func TestClientsOfTwoReplicasConform(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	both := locktest.AtRandom(replica(t, databaseURL), replica(t, databaseURL))
	locktest.Run(t, func(*testing.T) lock.Service { return both })
}

func TestOneOf50ClientsGetsTheLock(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	replicas := []*client.Client{replica(t, databaseURL), replica(t, databaseURL)}
	const contenders, rounds = 50, 5
	for round := range rounds {
		var all sync.WaitGroup
		errs := make([]error, contenders)
		for i := range contenders {
			all.Go(func() {
				_, errs[i] = replicas[i%2].Acquire(t.Context(), lock.Acquire{
					Name: fmt.Sprintf("race:%d", round), Holder: fmt.Sprintf("client %d", i),
				})
			})
		}
		all.Wait()
		granted := 0
		for i, err := range errs {
			if err == nil {
				granted++
			} else if !errors.Is(err, lock.ErrHeld) {
				t.Errorf("client %d: %v", i, err)
			}
		}
		if granted != 1 {
			t.Errorf("round %d: %d clients were granted the lock", round, granted)
		}
	}
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
	return open(t, client.Options{BaseURL: url, HTTP: &http.Client{Transport: transport}}), &transport.requests
}

func TestManyCallsShareFewRequests(t *testing.T) {
	t.Parallel()
	c, requests := countingClient(t, served(t, pgtest.URL(t)))
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

// TestClientConformsWhileOthersCall makes the calls of the suite share requests with other calls.
func TestClientConformsWhileOthersCall(t *testing.T) {
	t.Parallel()
	c := concurrentClient{replica(t, pgtest.URL(t)), t}
	locktest.Run(t, func(*testing.T) lock.Service { return c })
}

// A concurrentClient starts other calls beside each call.
type concurrentClient struct {
	*client.Client
	t *testing.T
}

func (c concurrentClient) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	defer c.startOthers()()
	return c.Client.Acquire(ctx, a)
}

func (c concurrentClient) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	defer c.startOthers()()
	return c.Client.Renew(ctx, r)
}

func (c concurrentClient) Release(ctx context.Context, r lock.Release) error {
	defer c.startOthers()()
	return c.Client.Release(ctx, r)
}

// otherID is the lease_id of other calls. No lease has it.
var otherID = lock.LeaseID(uuid.MustParse("5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"))

// startOthers starts other calls and returns a function that waits for them.
func (c concurrentClient) startOthers() (wait func()) {
	var all sync.WaitGroup
	for range 4 { // twice as many as a Client sends at once
		all.Go(func() {
			if err := c.Client.Release(context.Background(), lock.Release{Name: "others", LeaseID: otherID}); !errors.Is(err, lock.ErrLeaseLost) {
				c.t.Errorf("one of the other calls: %v", err)
			}
		})
	}
	return all.Wait
}
