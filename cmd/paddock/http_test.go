package main

import (
	"io"
	"net/http"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// TestRequestForAnotherHostNameIsRefused checks the protection against DNS rebinding, which --no-auth turns off.
func TestRequestForAnotherHostNameIsRefused(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	for base, want := range map[string]int{
		serveHere(t, databaseURL):              http.StatusForbidden,
		serveHere(t, databaseURL, "--no-auth"): http.StatusOK,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/locks", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example"
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, res.Body)
		if res.StatusCode != want {
			t.Errorf("%s for another host name: %s, want %d", base, res.Status, want)
		}
	}
}

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
