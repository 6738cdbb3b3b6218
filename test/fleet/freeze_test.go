package fleet_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

var freezes = flag.Int("fleet.freezes", 6, "how often a prefix is frozen under 64 clients")

// TestNothingIsGrantedInAFreeze on two replicas, of which one is stopped during each second call.
func TestNothingIsGrantedInAFreeze(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	var replicas []*proctest.Process
	var locks []*client.Client
	for range 2 {
		p, url := built.Serve(t, databaseURL)
		c, err := client.New(client.Options{BaseURL: url})
		if err != nil {
			t.Fatal(err)
		}
		replicas, locks = append(replicas, p), append(locks, c)
	}
	var granted, refused atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for i := range 64 {
		clients.Go(func() {
			c := locks[i%2]
			for ctx.Err() == nil {
				a := lock.Acquire{Locks: lock.One(fmt.Sprint("billing:", i/4)), LeaseID: lock.LeaseID(uuid.New()), Holder: fmt.Sprint(i), TTL: time.Second}
				g, err := c.Acquire(ctx, a)
				switch {
				case err == nil:
					granted.Add(1)
					_ = c.Release(ctx, lock.Release{Locks: []string{a.Locks[0].Name}, LeaseID: g.ID}) // otherwise it ends with its TTL
				case errors.Is(err, lock.ErrFrozen):
					refused.Add(1)
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	await := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(proctest.Patience); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within %v: %s", proctest.Patience, what)
			}
		}
	}
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := replicas[1].Cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	const scope = lock.Scope("billing:")
	stopped, waited := 0, 0
	for i := range *freezes {
		before := granted.Load()
		await("clients are granted locks", func() bool { return granted.Load() > before+64 })
		if i%2 == 1 {
			signal(syscall.SIGSTOP)
		}
		tries := 0
		await("the freeze is answered", func() bool {
			if tries++; tries == 3 {
				signal(syscall.SIGCONT) // it was stopped in a transaction that the freeze has to wait for
			}
			_, err := locks[0].Freeze(t.Context(), lock.FreezeRequest{Scope: scope, Reason: "maintenance"})
			return err == nil
		})
		newest := newestToken(t, locks[0])
		nothingGranted := func() {
			t.Helper()
			if after := newestToken(t, locks[0]); after != newest {
				t.Fatalf("freeze %d: token %d was granted after %d", i, after, newest)
			}
		}
		if i%2 == 1 && tries < 3 {
			stopped++
		}
		asked := locks[i%2]
		if i%4 == 1 {
			asked = locks[0] // the other one sleeps until its leases have ended
		} else {
			signal(syscall.SIGCONT)
		}
		left := 0
		await("no lease is left", func() bool {
			nothingGranted()
			s, err := asked.Frozen(t.Context(), scope)
			left = max(left, s.Leases)
			return err == nil && s.Leases == 0
		})
		if left > 0 {
			waited++
		}
		page, err := locks[0].Locks(t.Context(), paddock.LockQuery{Prefix: string(scope), State: lock.Held})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("freeze %d: it has drained, but %d locks are held (%v)", i, len(page.Items), err)
		}
		signal(syscall.SIGCONT)
		tried := refused.Load()
		await("clients are refused", func() bool { return refused.Load() > tried+64 })
		nothingGranted()
		await("the freeze is ended", func() bool { return locks[0].Thaw(t.Context(), lock.ThawRequest{Scope: scope}) == nil })
	}
	t.Logf("%d freezes, %d answered while a replica was stopped, %d that waited for leases, %d grants, %d refusals",
		*freezes, stopped, waited, granted.Load(), refused.Load())
}

// newestToken returns the newest token of all locks of the test.
func newestToken(t *testing.T, locks paddock.Service) (newest lock.Token) {
	t.Helper()
	page, err := locks.Locks(t.Context(), paddock.LockQuery{Prefix: "billing:"})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Items {
		newest = max(newest, l.Token)
	}
	return newest
}
