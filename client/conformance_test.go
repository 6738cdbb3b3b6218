package client_test

import (
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// replica returns a client of a server of its own on the database.
func replica(t *testing.T, databaseURL string) *client.Client {
	t.Helper()
	return open(t, client.Options{BaseURL: served(t, databaseURL)})
}

// served returns the base URL of a server of its own on the database.
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

func TestAClientConforms(t *testing.T) {
	t.Parallel()
	c := replica(t, pgtest.URL(t))
	locktest.Run(t, func(*testing.T) lock.Service { return c })
}

func TestBatchesOfAClientConform(t *testing.T) {
	t.Parallel()
	c := locktest.Batched(replica(t, pgtest.URL(t)))
	locktest.Run(t, func(*testing.T) lock.Service { return c })
}

// TestAClientWithAKeyConforms, on the rules alone: for a key that may do everything it
// makes no difference that there are keys.
func TestAClientWithAKeyConforms(t *testing.T) {
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

func TestOf50ClientsOneHasTheLock(t *testing.T) {
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
