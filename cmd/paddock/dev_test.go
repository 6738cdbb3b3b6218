package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
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
	p.Stdout.Await(t, `See a fencing token at work: .* demo --url (.*)\n`)
	if page := p.Stdout.Await(t, `page: (\S+)`); !strings.Contains(get(t, page), "<html") {
		t.Errorf("%s is not a page", page)
	}

	database := p.Stdout.Await(t, `Database, .*: (\S+)`)
	pgtest.Exec(t, pgtest.Connect(t, database), "create table accounts (id int); insert into accounts values (42); table paddock.records")
	data := p.Stdout.Await(t, `Data: (\S+), removed at the end`)
	if code := p.Signal(t, syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if conn, err := pgx.Connect(t.Context(), database); err == nil {
		t.Errorf("PostgreSQL is left: %v", conn.Close(t.Context()))
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", data, err)
	}
}

func TestDevKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := sharedTempDir(t)
	mine := lock.Acquire{Locks: lock.One("kept"), Holder: "me", TTL: time.Hour, LeaseID: lock.LeaseID(uuid.New())}
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
	if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("PostgreSQL is left: %v", err)
	}
}

func TestDevUsesAGivenDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	for range 2 {
		p := start(t, "dev", "--database-url", url, "--schema=team_b", "--listen=127.0.0.1:0")
		address := p.Stdout.Await(t, `Paddock is ready: (\S+)`)
		acquire(t, address, lock.Acquire{Locks: lock.One(uuid.NewString()), Holder: "me", TTL: time.Hour, LeaseID: lock.LeaseID(uuid.New())})
		if said := p.Stdout.String(); strings.Contains(said, url) {
			t.Errorf("the URL, which may have a password, is printed:\n%s", said)
		}
		if code := p.Signal(t, syscall.SIGTERM); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	}
	pgtest.Exec(t, pgtest.Connect(t, url), "update team_b.schema_migrations set version = version + 1")
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

// TestDevRefusesWhatItCannotUse before it starts PostgreSQL, and leaves what is there.
func TestDevRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(sharedTempDir(t))
	file, taken := filepath.Join(dir, "file"), newUnansweredListener(t)
	mustBeNil(t, os.WriteFile(file, nil, 0o600))
	for name, inner := range map[string]string{"foreign": "data/mine.txt", "blocked": "data"} {
		path := filepath.Join(dir, name, inner)
		mustBeNil(t, os.MkdirAll(filepath.Dir(path), 0o755))
		mustBeNil(t, os.WriteFile(path, []byte("mine"), 0o600))
	}
	for want, args := range map[string][]string{
		file + " is a file; give a directory, which need not exist":                                       {"--dir", file},
		file + " is a file; give":                                                                         {"--dir", filepath.Join(file, "below")},
		filepath.Join(dir, "foreign", "data") + " has files that are not of a PostgreSQL; give another":   {"--dir", filepath.Join(dir, "foreign")},
		filepath.Join(dir, "blocked", "data") + " is a file, where the data of PostgreSQL would be":       {"--dir", filepath.Join(dir, "blocked")},
		taken + " is in use by another process; stop it, or choose another address with --metrics-listen": {"--ephemeral", "--metrics-listen", taken},
	} {
		code, stdout, stderr := call(t, nil, append([]string{"dev", "--listen=127.0.0.1:0"}, args...)...)
		if code == exitOK || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%q: exit code %d, want %q in:\n%s%s", args, code, want, stdout, stderr)
		}
	}
	found, err := os.ReadDir(filepath.Join(dir, "foreign"))
	if text, readErr := os.ReadFile(filepath.Join(dir, "foreign", "data", "mine.txt")); err != nil || readErr != nil || string(text) != "mine" || len(found) != 1 {
		t.Errorf("the foreign folder has %v, %v, and its file %q, %v", found, err, text, readErr)
	}
}

// newUnansweredListener returns an address that is in use, where nothing answers.
func newUnansweredListener(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	mustBeNil(t, err)
	t.Cleanup(func() { mustBeNil(t, listener.Close()) })
	return listener.Addr().String()
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
