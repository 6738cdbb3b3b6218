package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

func TestCommandsThatDevPrintsWork(t *testing.T) {
	t.Parallel()
	p := start(t, "dev", "--ephemeral", "--listen=127.0.0.1:0")
	p.Stdout.Await(t, `paddock demo --url (.*)\n`)
	said := p.Stdout.String()
	lines := regexp.MustCompile(`(?m)^ *curl .*$`).FindAllString(said, -1)
	if len(lines) != 3 {
		t.Fatalf("%d lines for curl in:\n%s", len(lines), said)
	}
	for i, want := range []string{"201", "200", "204"} {
		// The appended options make curl print the status instead of the answer.
		shell := exec.CommandContext(t.Context(), "bash", "-c", lines[i]+` -s -o /dev/null -w '%{http_code}'`)
		if got, err := shell.Output(); err != nil || string(got) != want {
			t.Errorf("%s\n%s (%v), want %s", lines[i], got, err, want)
		}
	}
	page := p.Stdout.Await(t, `page: (\S+)`)
	if got, err := exec.CommandContext(t.Context(), "curl", "-sfL", page).Output(); err != nil ||
		!strings.Contains(string(got), "<html") {
		t.Errorf("%s: %v\n%s", page, err, got)
	}

	checkWrite(t, p.Stdout.Await(t, `Database, .*: (\S+)`))

	data := p.Stdout.Await(t, `Data: (\S+), removed at the end`)
	if len(processesOf(t, data)) == 0 {
		t.Errorf("no process has %s on its command line, so this test cannot find remaining ones", data)
	}
	if code := p.Signal(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if left := processesOf(t, data); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", data, err)
	}
}

func TestDevKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := sharedTempDir(t)
	mine := lock.Acquire{Name: "kept", Holder: "me", TTL: time.Hour, LeaseID: lock.LeaseID(uuid.New())}
	var tokens []lock.Token
	for range 2 {
		p := start(t, "dev", "--dir", dir, "--listen=127.0.0.1:0")
		grant := acquire(t, p.Stdout.Await(t, `Paddock is ready: (\S+)`), mine)
		tokens = append(tokens, grant.Token)
		if code := p.Signal(t, syscall.SIGINT); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	}
	if tokens[0] != tokens[1] {
		t.Errorf("tokens %d: want the same lease", tokens)
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

func TestDevChoosesItsDataDirectory(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]devCommand{"": {Ephemeral: true}, "/somewhere": {Dir: "/somewhere"}} {
		if got, err := c.dir(variablesOf(nil)); err != nil || got != want {
			t.Errorf("%+v: %q, %v; want %q", c, got, err, want)
		}
	}
	var command devCommand
	if os.Geteuid() == 0 {
		if got, err := command.dir(variablesOf(nil)); err != nil || got != "/var/lib/paddock-dev" {
			t.Errorf("as root: %q, %v", got, err)
		}
		return
	}
	home := map[string]string{"HOME": "/home/me"}
	if got, err := command.dir(variablesOf(home)); err != nil || got != "/home/me/.local/share/paddock/dev" {
		t.Errorf("at home: %q, %v", got, err)
	}
	home["XDG_DATA_HOME"] = "/data"
	if got, err := command.dir(variablesOf(home)); err != nil || got != "/data/paddock/dev" {
		t.Errorf("with XDG_DATA_HOME: %q, %v", got, err)
	}
	if _, err := command.dir(variablesOf(nil)); exitCode(err) != exitUsage {
		t.Errorf("without a home: %v", err)
	}
}

// sharedTempDir returns a directory that the account of PostgreSQL can enter, unlike t.TempDir.
func sharedTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "paddock-dev-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "data")
}

// processesOf returns the command lines that contain what, except our own.
func processesOf(t *testing.T, what string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-axww", "-o", "args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, what) && !strings.Contains(line, "--dir") {
			found = append(found, line)
		}
	}
	return found
}

// checkWrite creates a table in the database and writes to it.
func checkWrite(t *testing.T, databaseURL string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "create table accounts (id int); insert into accounts values (42)"); err != nil {
		t.Error(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
