package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// counted returns a client of the server that counts its requests.
func counted(t *testing.T, url string) (*client.Client, *atomic.Int64) {
	t.Helper()
	requests := new(atomic.Int64)
	c := open(t, client.Options{BaseURL: url, HTTP: &http.Client{Transport: way(func(r *http.Request) (*http.Response, error) {
		requests.Add(1)
		return http.DefaultTransport.RoundTrip(r)
	})}})
	return c, requests
}

func TestManyCallsAreFewRequestsAndEachHasItsAnswer(t *testing.T) {
	t.Parallel()
	c, requests := counted(t, served(t, pgtest.URL(t)))
	const callers, rounds = 64, 10
	var all sync.WaitGroup
	var tokens sync.Map
	for i := range callers {
		all.Go(func() {
			name := fmt.Sprintf("many:%d", i/2) // of two callers one finds it held
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
					t.Errorf("caller %d was told of %s, which %s holds", i, g.Name, g.Holder)
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
		t.Errorf("%d calls were %d requests", calls, n)
	}
	t.Logf("%d calls were %d requests", calls, requests.Load())
}

// TestAClientConformsInACrowd has the calls of the suite share their requests with
// those of others.
func TestAClientConformsInACrowd(t *testing.T) {
	t.Parallel()
	c := crowded{replica(t, pgtest.URL(t)), t}
	locktest.Run(t, func(*testing.T) lock.Service { return c })
}

// crowded has others call whenever somebody does.
type crowded struct {
	*client.Client
	t *testing.T
}

func (c crowded) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	defer c.others()()
	return c.Client.Acquire(ctx, a)
}

func (c crowded) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	defer c.others()()
	return c.Client.Renew(ctx, r)
}

func (c crowded) Release(ctx context.Context, r lock.Release) error {
	defer c.others()()
	return c.Client.Release(ctx, r)
}

// others has some others call, and returns a function that waits for them.
func (c crowded) others() (wait func()) {
	var all sync.WaitGroup
	for range 2 * client.FlightsAtOnce {
		all.Go(func() {
			if err := c.Client.Release(context.Background(), lock.Release{Name: "crowd", LeaseID: leaseID}); !errors.Is(err, lock.ErrLeaseLost) {
				c.t.Errorf("one of the crowd: %v", err)
			}
		})
	}
	return all.Wait
}
