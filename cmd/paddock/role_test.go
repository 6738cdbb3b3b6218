package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// newOwner returns the URL of a database whose owner is a role of the test, and a function that runs SQL beside it, in
// which app stands for the role.
func newOwner(t *testing.T) (databaseURL *url.URL, exec func(sql string)) {
	t.Helper()
	admin := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	if databaseURL, err = url.Parse(admin); err != nil {
		t.Fatal(err)
	}
	database := conn.Config().Database
	role := "own" + database[len(database)-13:]
	exec = func(sql string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), strings.ReplaceAll(sql, "app", role)); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	exec("create role app login password 'secret'; grant usage on schema paddock to app; " +
		"grant all on all tables in schema paddock to app; grant all on all sequences in schema paddock to app")
	t.Cleanup(func() {
		exec("drop owned by app; drop role app")
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	databaseURL.User = url.UserPassword(role, "secret")
	return databaseURL, exec
}

// TestEveryCommandWaitsForTheDatabase, which has too many connections: also serve, whose first connection succeeds.
func TestEveryCommandWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	for args, connections := range map[string]string{
		"serve --listen=127.0.0.1:0": "1", "dev --listen=127.0.0.1:0": "0", "epoch list": "0", "fence install": "0",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			databaseURL, exec := newOwner(t)
			exec("grant create on schema public to app; alter role app connection limit " + connections)
			p := start(t, append(strings.Fields(args), "--wait-database=2m", "--database-url", databaseURL.String())...)
			p.Stderr.Await(t, `(database not reachable; retrying).*53300`)
			exec("alter role app connection limit 100")
			if strings.Contains(args, "--listen") {
				p.Stderr.Await(t, `"msg":"(listening)"`)
			} else if code := p.Exit(t); code != exitOK {
				t.Errorf("exit code %d:\n%s", code, p.Stderr)
			}
			exec("alter role app connection limit 0")
			code, _, stderr := call(t, nil, "epoch", "list", "--wait-database=10ms", "--database-url", databaseURL.String())
			if code != exitUnreachable || !strings.Contains(stderr, "too many connections") {
				t.Errorf("exit code %d:\n%s", code, stderr)
			}
		})
	}
}

// TestSettingsOfTheRoleDoNotMatterToCommands: they read instants as text.
func TestSettingsOfTheRoleDoNotMatterToCommands(t *testing.T) {
	t.Parallel()
	databaseURL, exec := newOwner(t)
	exec("alter role app set datestyle = 'German'; alter role app set timezone = 'Asia/Kathmandu'; " +
		"alter role app set search_path = 'pg_temp'; alter role app set bytea_output = 'escape'")
	for _, args := range [][]string{{"epoch", "list"}, {"epoch", "new", "--reason=test"}, {"migrate", "version"}, {"epoch", "open", "--reason=x"}} {
		if code, _, stderr := call(t, nil, append(args, "--database-url", databaseURL.String())...); code != exitOK {
			t.Errorf("%v: exit code %d:\n%s", args, code, stderr)
		}
	}
}

func TestServeNamesAMissingRight(t *testing.T) {
	t.Parallel()
	databaseURL, exec := newOwner(t)
	exec("revoke update on paddock.records, paddock.parts from app")
	code, _, stderr := call(t, nil, "serve", "--listen=127.0.0.1:0", "--database-url", databaseURL.String())
	want := "grant update on paddock.parts, paddock.records to " + databaseURL.User.Username()
	if code != exitNotAllowed || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, want %d and %q in:\n%s", code, exitNotAllowed, want, stderr)
	}
	exec("revoke usage on schema paddock from app")
	for want, args := range map[string][]string{
		"grant usage on schema paddock to": {"serve"}, "run as the owner of the database: grant create on database ": {"migrate", "up", "--schema=other"},
	} {
		code, _, stderr := call(t, nil, append(args, "--database-url", databaseURL.String())...)
		if code != exitNotAllowed || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, want %d and %q in:\n%s", args, code, exitNotAllowed, want, stderr)
		}
	}
}

// TestARightThatIsRevokedLaterIsNamed in /readyz and in the log, and calls are refused, not failed.
func TestARightThatIsRevokedLaterIsNamed(t *testing.T) {
	t.Parallel()
	databaseURL, exec := newOwner(t)
	p, base := startServe(t, databaseURL.String())
	exec("revoke update on paddock.records from app")
	grant := "grant update on paddock.records to " + databaseURL.User.Username() + ";"
	await.Until(t, "/readyz has the statement", func() bool { // it repeats an answer for a second
		status, body := probe(t, base+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, grant)
	})
	locks := replica.Connect(t, client.Options{BaseURL: base})
	_, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One("x"), Holder: "me", TTL: time.Minute})
	if !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "denies the service a right") {
		t.Errorf("acquire: %v", err)
	}
	p.Stderr.Await(t, `"(batch failed)","error":"[^"]*`+regexp.QuoteMeta(grant))
	exec("grant update on paddock.records to app")
	await.Until(t, "it is ready again", func() bool { status, _ := probe(t, base+"/readyz"); return status == http.StatusOK })
}

// probe returns the status and the body of an answer.
func probe(t *testing.T, url string) (status int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestPasswordsWithDelimitersAreRefused: the rest would be taken for a host or a database.
func TestPasswordsWithDelimitersAreRefused(t *testing.T) {
	t.Parallel()
	const a, b = "hunter", "secret2"
	for _, databaseURL := range []string{
		"postgres://me:" + a + "@" + b + "@db.invalid/paddock", "postgres://me:" + a + "/" + b + "@db.invalid/paddock",
		"postgres://me:12/" + b + "@db.invalid/paddock", "postgres://me:" + a + "#" + b + "@db.invalid/paddock",
		"postgres://me:12?" + b + "@db.invalid/paddock", "postgres://me:" + a + "@" + b + "/" + b + "@db.invalid/paddock",
		"postgres://me:" + a + "%" + b + "@db.invalid/paddock", "postgres://me@db.invalid/c?password=" + a + "&" + b,
		"postgres://me@db.invalid/c?password=" + a + "#" + b, "postgres://me:" + a + " " + b + "@db.invalid/c?x",
		"host=db.invalid password=" + a + " " + b, "host=db.invalid password='" + a + "'" + b + "'",
	} {
		for _, args := range [][]string{{"serve"}, {"epoch", "list"}, {"migrate", "up"}, {"fence", "install"}, {"dev"}} {
			env := map[string]string{"PADDOCK_DATABASE_URL": databaseURL, "PADDOCK_FENCE_DATABASE_URL": databaseURL,
				"PADDOCK_DEV_DATABASE_URL": databaseURL}
			if args[0] == "dev" {
				args = append(args, "--listen=127.0.0.1:0")
			}
			code, stdout, stderr := call(t, env, args...)
			if code != exitUsage || !strings.Contains(stderr, "must be percent-encoded") && !strings.Contains(stderr, "in quotes") || strings.Contains(stdout+stderr, a) ||
				strings.Contains(stdout+stderr, b) {
				t.Errorf("%s: %v: exit code %d:\n%s", databaseURL, args, code, stdout+stderr)
			}
		}
	}
}

// TestAPasswordThatLooksLikeAParameterIsNotRepeated: PostgreSQL would name the parameter that it does not know.
func TestAPasswordThatLooksLikeAParameterIsNotRepeated(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, nil, "migrate", "version", "--database-url", pgtest.URL(t)+"&password=a&secret2=b")
	if code != exitUsage || strings.Contains(stdout+stderr, "secret2") {
		t.Errorf("exit code %d:\n%s", code, stdout+stderr)
	}
}

// TestServeReadsTheURLFileForEachConnection changes role and password in the file, and ends the connections. The server
// may trust all connections, so the role changes with its password.
func TestServeReadsTheURLFileForEachConnection(t *testing.T) {
	t.Parallel()
	databaseURL, exec := newOwner(t)
	file := filepath.Join(t.TempDir(), "url")
	write := func() {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(databaseURL.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write()
	base := serveHere(t, "postgres://unused.invalid/", "--database-url-file", file)
	acquire(t, base, lock.Acquire{Locks: lock.One("before"), Holder: "me", TTL: time.Minute})
	name := databaseURL.User.Username()
	exec("alter role app rename to app_2")
	defer exec("alter role app_2 rename to app")
	databaseURL.User = url.UserPassword(name+"_2", "changed")
	write()
	exec("select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'app_2'")
	acquire(t, base, lock.Acquire{Locks: lock.One("after"), Holder: "me", TTL: time.Minute})
}
