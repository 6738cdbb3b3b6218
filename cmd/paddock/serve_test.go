package main

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// expectReady checks that paddock healthcheck succeeds.
func expectReady(t *testing.T, base string) {
	t.Helper()
	if code, stdout, stderr := call(t, nil, "healthcheck", "--url", base); code != exitOK || stdout != "ready\n" {
		t.Errorf("healthcheck: exit code %d:\n%s%s", code, stdout, stderr)
	}
}

func acquire(t *testing.T, base string, a lock.Acquire) lock.Grant {
	t.Helper()
	grant, err := replica.Connect(t, client.Options{BaseURL: base}).Acquire(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

func TestServeStoppedBySignalExitsWithZero(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p, base := startServe(t, databaseURL)
		expectReady(t, base)
		if code := p.Signal(t, s); code != exitOK || !strings.Contains(p.Stderr.String(), `"msg":"stopped"`) {
			t.Errorf("%v: exit code %d:\n%s", s, code, p.Stderr)
		}
	}
}

func TestServeStoppedDuringStartExitsWithZero(t *testing.T) {
	t.Parallel()
	p := start(t, "serve", "--wait-database=1h", "--database-url=postgres://me@127.0.0.1:1/c")
	p.Stderr.Await(t, `(database not reachable; retrying)`)
	if code := p.Signal(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, p.Stderr)
	}
}

func TestPortInUseIsExplained(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, taken) })
	for _, args := range [][]string{{"serve", "--database-url", pgtest.URL(t)}, {"dev", "--ephemeral"}} {
		code, _, stderr := call(t, nil, append(args, "--listen", taken.Addr().String())...)
		if code != exitFailed || !strings.Contains(stderr, "choose another address with --listen") {
			t.Errorf("%v: exit code %d:\n%s", args, code, stderr)
		}
	}
}

func TestFailedHealthcheckExitsWithOne(t *testing.T) {
	t.Parallel()
	code, _, stderr := call(t, map[string]string{"PADDOCK_LISTEN": ":1"}, "healthcheck")
	if code != exitFailed || !strings.Contains(stderr, "not ready") || !strings.Contains(stderr, "nothing listens on http://127.0.0.1:1; start the replica") {
		t.Errorf("unreachable: exit code %d:\n%s", code, stderr)
	}
	silent := silentServer(t)
	code, _, stderr = call(t, nil, "healthcheck", "--url", silent, "--timeout=10ms")
	if code != exitFailed || !strings.Contains(stderr, silent+": no answer came in time; check the URL") {
		t.Errorf("no answer: exit code %d:\n%s", code, stderr)
	}
}

// silentServer returns the base URL of a server that never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, listener) })
	return "http://" + listener.Addr().String()
}

func TestPagesOfAnotherOriginNeedAFlag(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	_, base := startServe(t, databaseURL, "--cors-origin", "http://localhost:5173", "--cors-origin", "https://app.example")
	for origin, want := range map[string]string{"https://app.example": "https://app.example", "https://evil.example": ""} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/locks", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if got := response.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s: allowed %q, want %q", origin, got, want)
		}
	}
	for _, origin := range []string{"*", "https://app.example/page", "app.example"} {
		code, _, stderr := call(t, nil, "serve", "--database-url", databaseURL, "--cors-origin", origin)
		if code != exitUsage || !strings.Contains(stderr, "--cors-origin: ") {
			t.Errorf("%s: exit code %d:\n%s", origin, code, stderr)
		}
	}
}
