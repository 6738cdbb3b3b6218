package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// socketPath returns a path for a socket, which may have about a hundred bytes: t.TempDir has the test's name.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "paddock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "paddock.sock")
}

// TestServeListensOnASocket, replaces that of a crashed process, and removes it at its end.
func TestServeListensOnASocket(t *testing.T) {
	t.Parallel()
	url, path := pgtest.URL(t), socketPath(t)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	log, ended := proctest.NewTranscript(), make(chan int, 1)
	go func() {
		env := map[string]string{"GOGC": "100"}
		ended <- run(ctx, []string{"serve", "--database-url", url, "--listen", "unix:" + path}, variablesOf(env), log, log)
	}()
	if got := log.Await(t, `"msg":"listening","address":"([^"]+)"`); got != "unix:"+path {
		t.Errorf("listens on %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("the socket is %v, %v", info, err)
	}
	env := map[string]string{"PADDOCK_URL": "unix:" + path}
	// A run in this process would wait for the children of all tests.
	held := start(t, "run", "--url=unix:"+path, "b", "--", "/bin/sh", "-c", "test $PADDOCK_URL = unix:"+path)
	if code := held.Exit(t); code != exitOK {
		t.Errorf("run: exit code %d:\n%s", code, held.Stderr)
	}
	for _, args := range [][]string{{"acquire", "a"}, {"list"}, {"healthcheck"}} {
		if code, stdout, stderr := call(t, env, args...); code != exitOK {
			t.Errorf("%v: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
	if code, _, stderr := call(t, map[string]string{"PADDOCK_LISTEN": "unix:" + path}, "healthcheck"); code != exitOK {
		t.Errorf("the check of PADDOCK_LISTEN: exit code %d:\n%s", code, stderr)
	}
	code, _, stderr := call(t, nil, "serve", "--database-url", url, "--listen", "unix:"+path)
	if code == exitOK || !strings.Contains(stderr, "another process listens on that socket") {
		t.Errorf("a second service: exit code %d:\n%s", code, stderr)
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("serve ended with %d:\n%s", code, log)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestASocketReplacesNoOtherFile(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bind(t.Context(), "--listen", "unix:"+path); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("listening on a file: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
	for address, want := range map[string]string{"unix:paddock.sock": "absolute path", "unix:": "absolute path", "unix:@paddock": "absolute path"} {
		if _, err := checkAddress(t.Context(), "--listen", address, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	code, _, stderr := call(t, nil, "serve", "--database-url=postgres://nobody@127.0.0.1:1/nothing", "--no-auth", "--listen=unix:/run/p.sock", "--tls-cert=c.pem", "--tls-key=k.pem")
	if code != exitUsage || !strings.Contains(stderr, "without TLS") {
		t.Errorf("TLS on a socket: exit code %d:\n%s", code, stderr)
	}
}
