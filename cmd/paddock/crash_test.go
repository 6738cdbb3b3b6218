package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestTwoReplicasConform sends each call of the conformance suite to one of two processes on one database, as a load
// balancer would.
func TestTwoReplicasConform(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	_, first := startServe(t, databaseURL)
	_, second := startServe(t, databaseURL)
	both := locktest.AtRandom(connect(t, first), connect(t, second))
	locktest.Run(t, func(*testing.T) lock.Service { return both })
}

// TestGrantSurvivesACrashOfEverything kills replica and database right after a grant was answered.
func TestGrantSurvivesACrashOfEverything(t *testing.T) {
	t.Parallel()
	db, databaseURL := pgtest.Server(t)
	mine := lock.Acquire{Name: "jobs:nightly", Holder: "me", TTL: time.Hour, LeaseID: lock.LeaseID(uuid.New())}
	p, base := startServe(t, databaseURL)
	before := acquire(t, base, mine)
	if err := db.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Signal(t, syscall.SIGKILL)
	if err := db.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, base = startServe(t, databaseURL)
	after := acquire(t, base, mine)
	if !after.Replayed || after.Token != before.Token || !after.ExpiresAt.Equal(before.ExpiresAt) {
		t.Errorf("after the crash the lease is %+v, was %+v", after, before)
	}
	if other := acquire(t, base, lock.Acquire{Name: "another", Holder: "me"}); other.Token <= before.Token {
		t.Errorf("token %d was granted after %d", other.Token, before.Token)
	}
}

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
