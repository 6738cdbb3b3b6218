package main

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

func TestDemoShowsARefusedStaleWrite(t *testing.T) {
	t.Parallel()
	base := serveHere(t, pgtest.URL(t))
	p := start(t, "demo", "--url", base, "--ttl=300ms")
	if code := p.Exit(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	rest := p.Stdout.String()
	for _, step := range []string{
		"A  acquires the lock", "A  writes with token 1: accepted", "A  is paused", "B  acquires the lock: token 2",
		"B  writes with token 2: accepted", "A  resumes", "A  writes with token 1: refused, 412 stale_token", "as B " +
			"left it", "No lock can",
	} {
		_, after, found := strings.Cut(rest, step)
		if !found {
			t.Fatalf("%q is missing or out of order in:\n%s", step, p.Stdout)
		}
		rest = after
	}
}

// An unfencedService accepts every token in fenced writes.
type unfencedService struct{ lock.Service }

func (c unfencedService) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	now, err := c.Lock(ctx, w.Lock)
	if err != nil {
		return lock.FencedValue{}, err
	}
	w.Token = now.Token
	return c.Service.WriteFenced(ctx, w)
}

func TestDemoFailsIfAStaleWriteIsAccepted(t *testing.T) {
	t.Parallel()
	locks, err := store.Open(t.Context(), pgtest.URL(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	service := httptest.NewServer(server.New(server.Options{Locks: unfencedService{locks}}))
	t.Cleanup(service.Close)

	p := start(t, "demo", "--url", service.URL, "--ttl=300ms")
	if code := p.Exit(t); code != exitFailed ||
		!strings.Contains(p.Stderr.String(), "A wrote with token 1 after token 2") {
		t.Errorf("exit code %d:\n%s%s", code, p.Stdout, p.Stderr)
	}
}

func TestDemoNeedsAService(t *testing.T) {
	t.Parallel()
	code, _, stderr := call(t, nil, "demo", "--url=http://127.0.0.1:1")
	if code != exitUnreachable || !strings.Contains(stderr, "paddock dev") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestDemoReportsWhyItsWorkerFailed(t *testing.T) {
	t.Parallel()
	base := serveHere(t, pgtest.URL(t), "--min-ttl=1s")
	p := start(t, "demo", "--url", base, "--ttl=300ms")
	if code := p.Exit(t); code != exitFailed || !strings.Contains(p.Stderr.String(), "ttl_ms is 300") {
		t.Errorf("exit code %d:\n%s", code, p.Stderr)
	}
}
