package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// TestSetsThatOverlapExcludeEachOther: workers lock random accounts, each in an order of its own, through two
// replicas. All of them finish, no two have one account, and nothing is left behind.
func TestSetsThatOverlapExcludeEachOther(t *testing.T) {
	t.Parallel()
	const accounts, workers, transfers = 5, 6, 8
	database := pgtest.URL(t)
	clients := []*client.Client{
		replica.Connect(t, client.Options{BaseURL: replica.Start(t, database)}),
		replica.Connect(t, client.Options{BaseURL: replica.Start(t, database)}),
	}
	var holders [accounts]atomic.Int32
	var newest [accounts]atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for range transfers {
				chosen := rand.Perm(accounts)[:2+rand.IntN(2)]
				var members []lock.Member
				for _, n := range chosen {
					members = append(members, lock.Member{Name: fmt.Sprint("accounts:", n)})
				}
				err := guard.DoAll(ctx, clients[w%2], members, guard.Options{Wait: guard.Forever}, func(ctx context.Context, l *guard.Lease) error {
					for _, n := range chosen {
						if holders[n].Add(1) != 1 || newest[n].Swap(int64(l.Token())) >= int64(l.Token()) {
							t.Errorf("account %d is held twice, or token %d is not the newest", n, l.Token())
						}
					}
					time.Sleep(5 * time.Millisecond)
					for _, n := range chosen {
						holders[n].Add(-1)
					}
					return ctx.Err()
				})
				if err != nil {
					t.Errorf("worker %d: %v", w, err)
				}
			}
		})
	}
	all.Wait()
	page, err := clients[0].Locks(t.Context(), lock.LockQuery{Prefix: "accounts:"})
	if err != nil || len(page.Items) != accounts {
		t.Fatalf("%d locks, %v", len(page.Items), err)
	}
	for _, l := range page.Items {
		if l.State != lock.Free || l.Waiters != 0 {
			t.Errorf("at the end the lock is %+v", l)
		}
	}
}
