// Package replica runs replicas of the service inside of a test process.
package replica

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

// Start starts a replica on the database and returns its base URL. It logs warnings to the test, and stops when the
// test ends.
func Start(t testing.TB, databaseURL string) string {
	t.Helper()
	return start(t, databaseURL, nil)
}

// StartKeyed is Start for a replica that requires one of the keys.
func StartKeyed(t testing.TB, databaseURL string, keys *access.Keyring) string {
	t.Helper()
	return start(t, databaseURL, keys)
}

func start(t testing.TB, databaseURL string, keys *access.Keyring) string {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	stored, err := store.Open(t.Context(), databaseURL, store.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stored.Close)
	locks := lock.Service(stored)
	if keys != nil {
		locks = access.Guard(locks, access.Limits{})
	}
	s := httptest.NewServer(server.New(server.Options{Locks: locks, Keys: keys, Ready: stored.Ready, Log: log}))
	t.Cleanup(s.Close)
	return s.URL
}

// Client returns a client of a new replica on the database.
func Client(t testing.TB, databaseURL string) *client.Client {
	t.Helper()
	return Connect(t, client.Options{BaseURL: Start(t, databaseURL)})
}

// Connect returns a client with the options, which must be valid.
func Connect(t testing.TB, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
