package conformance_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

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
	c := replica.Connect(t, client.Options{BaseURL: s.URL, Key: secret})
	locktest.Run(t, c)
}

// TestClientConformsWhileOthersCall makes the calls of the suite share requests with other calls.
func TestClientConformsWhileOthersCall(t *testing.T) {
	t.Parallel()
	c := concurrentClient{replica.Client(t, pgtest.URL(t)), t}
	locktest.Run(t, c)
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

// others is how many calls run beside each call: twice as many as the requests in flight from which on calls gather.
const others = 4

// startOthers starts other calls and returns a function that waits for them.
func (c concurrentClient) startOthers() (wait func()) {
	var all sync.WaitGroup
	for range others {
		all.Go(func() {
			if err := c.Client.Release(context.Background(), lock.Release{Locks: []string{"others"}, LeaseID: lock.LeaseID{1}}); !errors.Is(err, lock.ErrLeaseLost) {
				c.t.Errorf("one of the other calls: %v", err)
			}
		})
	}
	return all.Wait
}
