package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

func TestDevServesUntilItIsTerminated(t *testing.T) {
	t.Parallel()
	p := start(t, "dev", "--ephemeral", "--listen=127.0.0.1:0")
	p.Stdout.Await(t, `paddock demo --url (.*)\n`)
	if page := p.Stdout.Await(t, `page: (\S+)`); !strings.Contains(get(t, page), "<html") {
		t.Errorf("%s is not a page", page)
	}

	checkTables(t, p.Stdout.Await(t, `Database, .*: (\S+)`))

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

func TestDevUsesAGivenDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	for range 2 {
		p := start(t, "dev", "--database-url", url, "--schema=team_b", "--listen=127.0.0.1:0")
		address := p.Stdout.Await(t, `Paddock is ready: (\S+)`)
		acquire(t, address, lock.Acquire{Name: uuid.NewString(), Holder: "me", TTL: time.Hour, LeaseID: lock.LeaseID(uuid.New())})
		if said := p.Stdout.String(); strings.Contains(said, url) {
			t.Errorf("the URL, which may have a password, is printed:\n%s", said)
		}
		if code := p.Signal(t, syscall.SIGTERM); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	}
	execSQL(t, url, "update team_b.schema_migrations set version = version + 1")
	code, _, stderr := call(t, map[string]string{"PADDOCK_DEV_DATABASE_URL": url, "PADDOCK_SCHEMA": "team_b"}, "dev", "--listen=127.0.0.1:0")
	if code != exitUsage || !strings.Contains(stderr, "the schema team_b in the database has version") || !strings.Contains(stderr, "does not migrate a database that may be in use") {
		t.Errorf("another schema: exit code %d: %s", code, stderr)
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
	var found []string
	for _, line := range commandLines(t) {
		if strings.Contains(line, what) && !strings.Contains(line, "--dir") {
			found = append(found, line)
		}
	}
	return found
}

// commandLines returns the command lines of all processes.
func commandLines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 { // not Linux, where the program ps may be missing
		out, err := exec.CommandContext(t.Context(), "ps", "-axww", "-o", "args=").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(out), "\n")
	}
	var all []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		all = append(all, strings.ReplaceAll(string(line), "\x00", " ")) // empty if the process has ended
	}
	return all
}

// checkTables creates a table in the database and writes to it, and reads one of Paddock.
func checkTables(t *testing.T, databaseURL string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "create table accounts (id int); insert into accounts values (42); table paddock.records"); err != nil {
		t.Error(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
