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

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
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
	_, err = replica.Connect(t, client.Options{BaseURL: base}).Renew(t.Context(), lock.Renew{Name: grant.Name, LeaseID: grant.ID})
	if e := new(lock.Error); !errors.As(err, &e) || e.Ended != lock.Revoked || e.Reason != "maintenance" {
		t.Errorf("the former holder gets %v", err)
	}
}

// TestPageRevokesASession submits the form of the session's page, and checks the store.
func TestPageRevokesASession(t *testing.T) {
	t.Parallel()
	base := serveHere(t, pgtest.URL(t))
	locks := replica.Connect(t, client.Options{BaseURL: base})
	s, err := locks.OpenSession(t.Context(), lock.OpenSession{Holder: "worker <1>", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, base, lock.Acquire{Name: "jobs:nightly", Holder: "worker <1>", SessionID: s.ID})
	page := base + "/ui/sessions/" + s.ID.Ref().String()
	for _, shown := range []string{get(t, base+"/ui/sessions?holder=worker+%3C1%3E"), get(t, page)} {
		if !strings.Contains(shown, "worker &lt;1&gt;") || !strings.Contains(shown, s.ID.Ref().String()) {
			t.Errorf("the page does not show the session:\n%s", shown)
		}
	}
	res, err := http.PostForm(page, url.Values{"reason": {"maintenance"}})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, res.Body)
	if res.StatusCode != http.StatusOK || res.Request.URL.RawQuery != "revoked=1" {
		t.Errorf("revoking ended with %s at %s", res.Status, res.Request.URL)
	}
	_, err = locks.RenewSession(t.Context(), lock.RenewSession{ID: s.ID})
	if e := new(lock.Error); !errors.As(err, &e) || e.Code != lock.ErrSessionLost || e.Ended != lock.Revoked || e.Reason != "maintenance" {
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
