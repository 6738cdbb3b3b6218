package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// TestAnOldDatabaseServerIsRefused uses a server that claims to be PostgreSQL 13.
func TestAnOldDatabaseServerIsRefused(t *testing.T) {
	t.Parallel()
	old := pgtest.ClaimVersion(t, pgtest.EmptyURL(t), 130023)
	migrated := pgtest.ClaimVersion(t, pgtest.URL(t), 130023)
	const want = "The database server is PostgreSQL 13.23, and Paddock needs 14 or newer (tested up to 18). " +
		"Upgrade the server, or give the URL of a newer one."
	for _, args := range [][]string{
		{"serve", "--listen=127.0.0.1:0", "--database-url", old},
		{"serve", "--listen=127.0.0.1:0", "--database-url", migrated},
		{"serve", "--listen=127.0.0.1:0", "--migrate", "--database-url", old},
		{"migrate", "up", "--database-url", old},
		{"migrate", "version", "--database-url", old},
		{"epoch", "list", "--database-url", migrated},
	} {
		code, stdout, stderr := call(t, nil, args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) || strings.Contains(stderr, "listening") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestServeWarnsOnlyOfAVersionThatIsNotTested uses servers that claim the versions.
func TestServeWarnsOnlyOfAVersionThatIsNotTested(t *testing.T) {
	t.Parallel()
	for number, warns := range map[int]bool{180004: false, 190001: true} {
		p, base := startServe(t, pgtest.ClaimVersion(t, pgtest.URL(t), number))
		expectReady(t, base)
		if code := p.Signal(t, syscall.SIGTERM); code != exitOK {
			t.Errorf("%d: exit code %d", number, code)
		}
		log := p.Stderr.String()
		if strings.Contains(log, `"msg":"PostgreSQL is newer than the versions tested","version":"19.1","newest_tested":18`) != warns {
			t.Errorf("%d: warned: %t\n%s", number, !warns, log)
		}
	}
}
