package main

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

func TestFenceInstallAndUninstall(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.EmptyURL(t)
	env := map[string]string{"PADDOCK_FENCE_DATABASE_URL": databaseURL}
	pgtest.Exec(t, pgtest.Connect(t, databaseURL), `create table accounts (id int); create schema "My Bank"`)
	for _, step := range []struct {
		sql  string
		args []string
		want string
	}{
		{"", []string{"uninstall", "--yes"}, "paddock_fence is not installed in schema public"},
		{"", []string{"install"}, "Installed paddock_fence in schema public"},
		{"select paddock_fence('a', 8), paddock_fence('b', 9), paddock_fence_guard('accounts')", []string{"install"},
			"Updated paddock_fence to this release in schema public"},
		{"", []string{"uninstall", "--yes"}, "It protected accounts and stored the tokens of 2 resources."},
		{"insert into accounts values (1)", []string{"install", "--fence-schema=My Bank"},
			"Installed paddock_fence in schema My Bank"},
		{`select "My Bank".paddock_fence('a', 7)`, []string{"uninstall", "--yes", "--fence-schema=public"},
			"paddock_fence is not installed in schema public"},
		{`select "My Bank".paddock_fence('a', 7)`, []string{"uninstall", "--yes", "--fence-schema=My Bank"},
			"It protected no table and stored the tokens of 1 resources."},
	} {
		pgtest.Exec(t, pgtest.Connect(t, databaseURL), step.sql)
		code, stdout, stderr := call(t, env, append([]string{"fence"}, step.args...)...)
		if code != exitOK || !strings.Contains(stdout, step.want) || stderr != "" {
			t.Errorf("%q: exit code %d, want %q in:\n%s%s", step.args, code, step.want, stdout, stderr)
		}
	}
}

func TestFenceInstallErrorsAreExplained(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.EmptyURL(t)
	stranger := "stranger_" + strings.ToLower(rand.Text())
	pgtest.Exec(t, pgtest.Connect(t, databaseURL), "create role "+stranger)
	pgtest.Exec(t, pgtest.Connect(t, databaseURL), "revoke create on schema public from public") // PostgreSQL 14 grants it
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), databaseURL)
		if err == nil {
			_, err = conn.Exec(context.Background(), "drop role "+stranger)
		}
		if err != nil {
			t.Error(err)
			return
		}
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	elsewhere := pgtest.EmptyURL(t)
	for _, schema := range []string{`"My Bank"`, "shop"} {
		pgtest.Exec(t, pgtest.Connect(t, elsewhere), "create schema "+schema+"; set search_path = "+schema+";"+paddock.InstallFence)
	}
	dependent := pgtest.EmptyURL(t)
	pgtest.Exec(t, pgtest.Connect(t, dependent), paddock.InstallFence+"create schema mine; create view mine as select * from paddock_fences")
	none := map[string]string{"PADDOCK_DATABASE_URL": databaseURL, "DATABASE_URL": databaseURL}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		"only the database of the locks": {none, []string{"install"}, exitUsage, "PADDOCK_FENCE_DATABASE_URL"},
		"an invalid URL": {nil, []string{"install", "--database-url=postgres://a b:s3cret@c"}, exitUsage,
			"malformed"},
		"no server": {nil, []string{"install", "--wait-database=10ms", "--database-url=postgres://a:s3cret@127.0.0.1:1/b"},
			exitUnreachable, "nothing listens on 127.0.0.1:1; start PostgreSQL there"},
		"no such schema": {nil, []string{"install", "--fence-schema=none", "--database-url", databaseURL},
			exitFailed, "has no schema none; create it"},
		"the name of the schema of serve": {nil, []string{"install", "--schema=none", "--database-url", databaseURL},
			exitUsage, "unknown flag --schema"},
		"no schema at all": {nil, []string{"install", "--database-url",
			withParameter(t, databaseURL, "search_path", "none")}, exitFailed, "give --fence-schema"},
		"a role without rights": {nil, []string{"install", "--database-url", withParameter(t, databaseURL, "role",
			stranger)}, exitNotAllowed, "a role that may create objects in schema public"},
		"another schema has it": {nil, []string{"install", "--database-url",
			withParameter(t, dependent, "search_path", "mine,public")}, exitFailed, "give --fence-schema public"},
		"the schema of the locks": {nil, []string{"install", "--fence-schema=paddock", "--database-url", pgtest.URL(t)},
			exitFailed, "has the tables of Paddock itself, and is for nothing else (SQLSTATE 3F000): Give --fence-schema, or set search_path, to the schema of the tables"},
		"the schema of the locks, which is the first of the search_path": {nil, []string{"install", "--database-url", withParameter(t, pgtest.URL(t), "search_path", "paddock")},
			exitFailed, "Give --fence-schema"},
		"without --yes": {nil, []string{"uninstall", "--database-url", databaseURL}, exitUsage, "--yes"},
		"two other schemas have it": {nil, []string{"uninstall", "--yes", "--database-url", elsewhere}, exitFailed,
			`not installed in the schema public, but in: "My Bank", shop`},
		"a dependent object": {nil, []string{"uninstall", "--yes", "--database-url", dependent}, exitFailed,
			"view mine depends on"},
		"a password where no URL belongs": {nil, []string{"install", "postgres://a:s3cret@b/c"}, exitUsage,
			"not repeated here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := call(t, c.env, append([]string{"fence"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" || strings.Contains(stderr, "s3cret") {
				t.Errorf("exit code %d, want %d and %q in:\n%s%s", code, c.code, c.want, stdout, stderr)
			}
		})
	}
}

// withParameter returns the URL with a parameter set.
func withParameter(t *testing.T, databaseURL, parameter, value string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(parameter, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String()
}
