package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATABASE_URL": pgtest.EmptyURL(t)}
	latest := migrations.Latest()
	all, tooMany := fmt.Sprintf("--steps=%d", latest), fmt.Sprintf("--steps=%d", latest+1)
	tooHigh := fmt.Sprintf("--to=%d", latest+1)
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"migrate", "version"}, exitFailed, "at version 0;"},
		{[]string{"serve", "--listen=127.0.0.1:0"}, exitFailed, "run paddock migrate up"},
		{[]string{"migrate", "up"}, exitOK, fmt.Sprintf("was at version 0 and is now at version %d", latest)},
		{[]string{"migrate", "up"}, exitOK, "is already at version"},
		{[]string{"migrate", "version"}, exitOK, fmt.Sprintf("at version %d; this binary is for version %[1]d", latest)},
		{[]string{"migrate", "down", "--yes", tooMany}, exitFailed, "cannot go down"},
		{[]string{"migrate", "down", "--yes"}, exitUsage, "--to"},
		{[]string{"migrate", "down", "--yes", "--to=1", "--steps=1"}, exitUsage, "--to"},
		{[]string{"migrate", "down", "--yes", "--to=-1"}, exitUsage, "--to"},
		{[]string{"migrate", "down", "--yes", tooHigh}, exitFailed, "cannot go down"},
		{[]string{"migrate", "down", "--yes", "--to=7"}, exitOK, fmt.Sprintf("was at version %d and is now at version 7", latest)},
		{[]string{"migrate", "down", "--yes", "--to=7"}, exitOK, "already at version 7"},
		{[]string{"migrate", "up"}, exitOK, fmt.Sprintf("was at version 7 and is now at version %d", latest)},
		{[]string{"migrate", "down", all}, exitUsage, "--yes"},
		{[]string{"migrate", "down", "--yes", all}, exitOK,
			fmt.Sprintf("was at version %d and is now at version 0", latest)},
	} {
		code, stdout, stderr := call(t, env, step.args...)
		if code != step.code || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%v: exit code %d, want %d and %q in:\n%s%s", step.args, code, step.code, step.want, stdout, stderr)
		}
	}
}

func TestServeMigratesWithTheFlag(t *testing.T) {
	t.Parallel()
	expectReady(t, serveHere(t, pgtest.EmptyURL(t), "--migrate"))
}

// TestServeRunsOnANewerSchema stands for a replica of the previous release that restarts after a migration.
func TestServeRunsOnANewerSchema(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	setSchema(t, databaseURL, "version = version + 1")
	expectReady(t, serveHere(t, databaseURL))
	expectReady(t, serveHere(t, databaseURL, "--migrate"))
}

func setSchema(t *testing.T, databaseURL, assignment string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "update paddock.schema_migrations set "+assignment); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
