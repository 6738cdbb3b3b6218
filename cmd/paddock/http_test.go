package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestPageRevokesALease submits the form of the page and checks the store.
func TestPageRevokesALease(t *testing.T) {
	t.Parallel()
	base := serveHere(t, pgtest.URL(t))
	grant := acquire(t, base, lock.Acquire{Name: "jobs:nightly", Holder: "worker <1>", TTL: time.Hour})
	if page := get(t, base+"/ui/?prefix=jobs"); !strings.Contains(page, "jobs:nightly") ||
		!strings.Contains(page, "worker &lt;1&gt;") {
		t.Errorf("the page does not show the lock:\n%s", page)
	}
	form := url.Values{"name": {grant.Name}, "token": {strconv.FormatInt(int64(grant.Token), 10)},
		"reason": {"maintenance"}}
	res, err := http.PostForm(base+"/ui/revoke", form)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, res.Body)
	if res.StatusCode != http.StatusOK {
		t.Errorf("revoking ended with %s", res.Status)
	}
	_, err = connect(t, base).Renew(t.Context(), lock.Renew{Name: grant.Name, LeaseID: grant.ID})
	if e := new(lock.Error); !errors.As(err, &e) || e.Ended != lock.Revoked || e.Reason != "maintenance" {
		t.Errorf("the former holder gets %v", err)
	}
}

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
