// Package replica runs replicas of the service inside of a test process.
package replica

import (
	"cmp"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

// Store opens a store on the database. It logs to the test, and is closed when the test ends.
func Store(t testing.TB, databaseURL string, o store.Options) *store.Store {
	t.Helper()
	o.Log = cmp.Or(o.Log, slog.New(slog.NewTextHandler(t.Output(), nil)))
	o.AllowHold = true // no test database fails over to a standby that lags
	locks, err := store.Open(t.Context(), databaseURL, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	return locks
}

// Start starts a replica on the database and returns its base URL. It logs warnings to the test, and stops when the
// test ends.
func Start(t testing.TB, databaseURL string) string {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	stored := Store(t, databaseURL, store.Options{Log: log})
	return Serve(t, server.Options{Locks: stored, Ready: stored.Ready, Log: log})
}

// Serve serves over HTTP until the test ends, and returns the base URL.
func Serve(t testing.TB, o server.Options) string {
	t.Helper()
	s := httptest.NewServer(server.New(o))
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
