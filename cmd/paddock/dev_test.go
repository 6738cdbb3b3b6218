package main

import (
	"errors"
	"io/fs"
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
