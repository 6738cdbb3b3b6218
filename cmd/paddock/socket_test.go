package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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
	log, ended := new(proctest.Transcript), make(chan int, 1)
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

// startActivated runs paddock serve as systemd does: the listener's socket is its first file, and the variables say so.
// The pid in LISTEN_PID is that of the service unless there is another one.
func startActivated(t *testing.T, listener *net.UnixListener, pid, sockets string, args ...string) *process {
	t.Helper()
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, file)
	script := `LISTEN_PID=${LISTEN_PID:-$$} exec "$0" serve --listen systemd "$@"`
	p := &process{proctest.New(exec.Command("/bin/sh", append([]string{"-c", script, self(t)}, args...)...))}
	p.Cmd.ExtraFiles = []*os.File{file}
	p.Cmd.Env = append(os.Environ(), actAsPaddock+"=1", "LISTEN_FDS="+sockets, "LISTEN_PID="+pid)
	p.Start(t)
	return p
}

// TestServeListensOnTheSocketOfSystemd: clients that connect before the service runs, or between two runs of it, are
// answered by the next one.
func TestServeListensOnTheSocketOfSystemd(t *testing.T) {
	t.Parallel()
	url, path := pgtest.URL(t), socketPath(t)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, listener)
	for _, name := range []string{"a", "b"} {
		early := start(t, "acquire", name, "--ttl=1m", "--url=unix:"+path)
		p := startActivated(t, listener, "", "1", "--database-url", url)
		if got := p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`); got != "unix:"+path {
			t.Errorf("listens on %s", got)
		}
		if code := early.Exit(t); code != exitOK {
			t.Errorf("acquire: exit code %d:\n%s", code, early.Stderr)
		}
		if code := p.Signal(t, syscall.SIGTERM); code != exitOK {
			t.Errorf("serve ended with %d:\n%s", code, p.Stderr)
		}
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the service has removed the socket of systemd: %v", err)
	}
}

func TestASocketThatSystemdDidNotPassIsRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPath(t), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, listener)
	for want, c := range map[string]struct {
		pid, sockets string
		args         []string
	}{
		"systemd passed no socket":           {"", "0", nil},
		"LISTEN_PID is 1, and this process":  {"1", "1", nil},
		"LISTEN_FDS is 2":                    {"", "2", nil},
		"LISTEN_FDS is x":                    {"", "x", nil},
		"is for this machine only, and with": {"", "1", []string{"--tls-cert=c.pem", "--tls-key=k.pem"}},
	} {
		p := startActivated(t, listener, c.pid, c.sockets, append(c.args, "--database-url=postgres://nobody@127.0.0.1:1/nothing")...)
		if code := p.Exit(t); code != exitUsage || !strings.Contains(p.Stderr.String(), want) {
			t.Errorf("%+v: exit code %d, want %q in:\n%s", c, code, want, p.Stderr)
		}
	}
	code, _, stderr := call(t, nil, "serve", "--listen=systemd", "--database-url=postgres://nobody@127.0.0.1:1/nothing")
	if code != exitUsage || !strings.Contains(stderr, "systemd passed no socket") {
		t.Errorf("without systemd: exit code %d:\n%s", code, stderr)
	}
	env := map[string]string{"PADDOCK_LISTEN": systemdSocket}
	if code, _, stderr := call(t, env, "healthcheck"); code != exitFailed || !strings.Contains(stderr, "give --url") {
		t.Errorf("healthcheck: exit code %d:\n%s", code, stderr)
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
