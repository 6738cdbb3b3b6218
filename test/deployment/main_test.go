package deployment_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/program"
)

// paddock is the program that all tests of this process run. It is a package variable because tests have no other way
// to share it.
var paddock program.Built

func TestMain(m *testing.M) { paddock.Main(m) }

// connect returns a client of the replica at base.
func connect(t *testing.T, base string) lock.Service {
	t.Helper()
	locks, err := client.New(client.Options{BaseURL: base})
	if err != nil {
		t.Fatal(err)
	}
	return locks
}

func acquire(t *testing.T, base string, a lock.Acquire) lock.Grant {
	t.Helper()
	grant, err := connect(t, base).Acquire(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

// get returns the body of a page.
func get(t *testing.T, address string) string {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, res.Body)
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", address, res.Status, err)
	}
	return string(body)
}

func mustClose(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
