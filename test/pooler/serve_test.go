package pooler_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/test/internal/pgbouncer"
)

// expectUsageError waits until paddock has ended and checks its exit code and its message.
func expectUsageError(t *testing.T, p *proctest.Process, words ...string) {
	t.Helper()
	if got := p.Exit(t); got != exitUsage {
		t.Errorf("%q: exit code %d, want %d:\n%s%s", p.Cmd.Args[1:], got, exitUsage, p.Stdout, p.Stderr)
	}
	for _, w := range words {
		if !strings.Contains(p.Stderr.String(), w) {
			t.Errorf("%q does not contain %q:\n%s", p.Cmd.Args[1:], w, p.Stderr)
		}
	}
}

// expectPoolerRefusal checks that serve has ended, and names the missing flag.
func expectPoolerRefusal(t *testing.T, p *proctest.Process) {
	t.Helper()
	expectUsageError(t, p, "The database URL leads through a connection pooler in transaction mode. "+
		"Start paddock with --pooler-mode=transaction, or give a URL that leads to PostgreSQL directly.")
	if said := p.Stderr.String(); strings.Contains(said, "42P05") || strings.Contains(said, `"listening"`) {
		t.Errorf("stdout:\n%s", said)
	}
}

func TestServeRefusesAPoolerInTransactionModeWithoutTheFlag(t *testing.T) {
	t.Parallel()
	through := pgbouncer.Start(t, pgtest.URL(t), "transaction", 20)
	for range 2 { // also when the pooler has served a replica before
		expectPoolerRefusal(t, paddock.Start(t, "serve", "--listen=127.0.0.1:0", "--database-url", through))
	}
}

func TestServeRefusesToMigrateThroughAPooler(t *testing.T) {
	t.Parallel()
	through := pgbouncer.Start(t, pgtest.EmptyURL(t), "transaction", 20)
	for _, args := range [][]string{{"serve", "--migrate", "--pooler-mode=transaction", "--listen=127.0.0.1:0"},
		{"migrate", "up"}} {
		p := paddock.Start(t, append(args, "--database-url", through)...)
		expectUsageError(t, p, "connection pooler in transaction mode",
			"Migrate with a URL that leads to PostgreSQL directly.")
	}
}

// TestServeStartsWithASupportedPooler starts a replica on each supported way to the database.
func TestServeStartsWithASupportedPooler(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	pooled := pgbouncer.Start(t, direct, "transaction", 50)
	for what, args := range map[string][]string{
		"directly":                         {direct},
		"through a pooler in session mode": {pgbouncer.Start(t, direct, "session", 50)},
		"with the flag through one in transaction mode": {pooled, "--pooler-mode=transaction"},
		"with a schema that is up to date":              {pooled, "--pooler-mode=transaction", "--migrate"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p, base := paddock.Serve(t, args[0], args[1:]...)
			if check := paddock.Start(t, "healthcheck", "--url", base); check.Exit(t) != 0 || check.Stdout.String() != "ready\n" {
				t.Errorf("healthcheck:\n%s%s", check.Stdout, check.Stderr)
			}
			if code := p.Signal(t, syscall.SIGTERM); code != 0 || strings.Contains(p.Stderr.String(), "do not arrive") {
				t.Errorf("exit code %d:\n%s", code, p.Stderr)
			}
		})
	}
}
