package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestJobsWithDifferentLocksShareAFencedResource: two replicas grant, one after the other, exclusive leases, sets,
// permits, leases in a tree, the first leases of readers, and leases to waiters. Connections are cut and replicas
// replaced meanwhile. Each token is greater than the one before, so a resource that all of these guard refuses none of
// them.
func TestJobsWithDifferentLocksShareAFencedResource(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	outside := connect(t, url)
	exec(t, outside, "set search_path = public; "+paddock.InstallFence)
	replicas := [2]*store.Store{open(t, url), open(t, url)}
	if _, err := replicas[0].DeclareTree(t.Context(), "tree"); err != nil {
		t.Fatal(err)
	}
	last, refused, smaller := lock.Token(0), 0, 0
	grants := soak.Rounds(200, 20_000)
	for i := range grants {
		switch i % 100 {
		case 50:
			exec(t, outside, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		case 99:
			replicas[i/100%2].Close()
			replicas[i/100%2] = open(t, url)
		}
		g := useOnce(t, replicas[i%2], replicas[i/3%2], i)
		if g.Token <= last {
			smaller++
			t.Logf("grant %d, of %s, has the token %d after %d", i, g.Name, g.Token, last)
		}
		last = g.Token
		if _, err := outside.Exec(t.Context(), "select paddock_fence('accounts', $1)", int64(g.Token)); err != nil {
			refused++
		}
	}
	if smaller > 0 || refused > 0 {
		t.Errorf("of %d grants %d had a smaller token than the one before, and the resource refused %d", grants, smaller, refused)
	}
}

// useOnce acquires a lock through a replica and releases it through another one. Which lock, and how, depends on i.
func useOnce(t *testing.T, from, to *store.Store, i int) lock.Grant {
	t.Helper()
	a := acquire(fmt.Sprintf("fd:%d", i*5%8))
	switch i % 6 {
	case 1:
		a.Locks[0].Mode = lock.Shared
	case 2:
		a.Locks = []lock.Member{{Name: fmt.Sprintf("permits:%d", i*5%8), Mode: lock.Permit, Capacity: 3}}
	case 3:
		a.Locks = lock.One(fmt.Sprintf("tree:%d:leaf", i%4))
	case 4:
		a.Locks = append(a.Locks, lock.Member{Name: "other"})
	case 5:
		before := mustRetry(t, func() (lock.Grant, error) { return to.Acquire(t.Context(), a) })
		a.LeaseID = newID()
		a.Wait = lock.MaxWait
		w := start(from, t.Context(), a)
		until(t, "the call waits", func() bool {
			l, err := to.Lock(t.Context(), a.Locks[0].Name)
			return err == nil && l.Waiters == 1 || w.isOver()
		})
		mustRetry(t, func() (lock.Grant, error) {
			return before, to.Release(t.Context(), lock.Release{Locks: []string{a.Locks[0].Name}, LeaseID: before.ID})
		})
	}
	g := mustRetry(t, func() (lock.Grant, error) { return from.Acquire(t.Context(), a) })
	mustRetry(t, func() (lock.Grant, error) {
		return g, to.Release(t.Context(), lock.Release{Locks: a.Names(), LeaseID: a.LeaseID})
	})
	return g
}

// mustRetry calls do until its outcome is known.
func mustRetry(t *testing.T, do func() (lock.Grant, error)) lock.Grant {
	t.Helper()
	for {
		g, err := do()
		if errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
}
