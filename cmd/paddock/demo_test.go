package main

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
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
	// The tokens depend on how often the service had to retry, and an answer of before the pause may come after it.
	steps := regexp.MustCompile(`(?s)A  acquires the lock for 300ms: token (\d+)\n` +
		`A  writes with token (\d+): accepted.*\nA  is paused .*\nB  acquires the lock: token (\d+)\n` +
		`B  writes with token (\d+): accepted.*\nA  resumes .*\n` +
		`A  writes with token (\d+): refused, 412 stale_token: (\d+) .*as B left it.*\nNo lock can`)
	tokens := steps.FindStringSubmatch(p.Stdout.String())
	if tokens == nil {
		t.Fatalf("steps are missing or out of order in:\n%s", p.Stdout)
	}
	a, b := tokens[1], tokens[3]
	if want := []string{a, a, b, b, a, b}; a == b || !slices.Equal(tokens[1:], want) {
		t.Errorf("the tokens are %v, want %v in:\n%s", tokens[1:], want, p.Stdout)
	}
}

// An unfencedService accepts every token in fenced writes.
type unfencedService struct{ paddock.Service }

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
	locks := replica.Store(t, pgtest.URL(t), store.Options{})
	url := replica.Serve(t, server.Options{Locks: unfencedService{locks}})
	p := start(t, "demo", "--url", url, "--ttl=300ms")
	if code := p.Exit(t); code != exitFailed ||
		!regexp.MustCompile(`A wrote with token \d+ after token \d+`).MatchString(p.Stderr.String()) {
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
	if code := p.Exit(t); code != exitFailed || !strings.Contains(p.Stderr.String(), "--ttl is 300ms; give ") {
		t.Errorf("exit code %d:\n%s", code, p.Stderr)
	}
}
