package main

import (
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock"
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

// TestVersionIsTheMostExactThatTheBuildKnows has the build information of each way to build.
func TestVersionIsTheMostExactThatTheBuildKnows(t *testing.T) {
	t.Parallel()
	api := string(apiVersion.FindSubmatch(paddock.OpenAPI)[1])
	revision := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}}
	for name, c := range map[string]struct {
		info                    *debug.BuildInfo
		release, commit         string
		wantVersion, wantCommit string
	}{
		"a release":      {&debug.BuildInfo{Main: debug.Module{Version: "v9.9.9"}, Settings: revision}, "1.2.3", "def", "1.2.3", "def"},
		"go install":     {&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "", "", "1.2.3", ""},
		"a clone":        {&debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.2026-abc+dirty"}, Settings: revision}, "", "", "1.2.4-0.2026-abc+dirty", "abc"},
		"go run":         {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", "", api + "-devel", ""},
		"an image":       {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "1.2.3", "def", "1.2.3", "def"},
		"a trial image":  {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", "def", api + "-devel", "def"},
		"no information": {nil, "", "", api + "-devel", ""},
		"a test":         {&debug.BuildInfo{}, "", "", api + "-devel", ""},
	} {
		if got := versionOf(c.info, c.release, c.commit); got.Version != c.wantVersion || got.Commit != c.wantCommit {
			t.Errorf("%s: version %s, commit %s; want %s and %s", name, got.Version, got.Commit, c.wantVersion, c.wantCommit)
		}
	}
}
