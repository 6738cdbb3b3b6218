// Package replica runs replicas of the service inside of a test process.
package replica

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

// Start starts a replica on the database and returns its base URL. It logs warnings to the test, and stops when the
// test ends.
func Start(t testing.TB, databaseURL string) string {
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
