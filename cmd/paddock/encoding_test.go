package main

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// TestADatabaseOfAnotherEncodingIsRefused by all that would use it: in SQL_ASCII a holder such as Jürgen is no text.
func TestADatabaseOfAnotherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	ascii, err := url.Parse(pgtest.URL(t))
	mustBeNil(t, err)
	conn, err := pgx.Connect(t.Context(), ascii.String())
	mustBeNil(t, err)
	name := strings.TrimPrefix(ascii.Path, "/") + "_ascii"
	pgtest.Exec(t, conn, "create database "+pgx.Identifier{name}.Sanitize()+" encoding 'SQL_ASCII' locale 'C' template template0")
	ascii.Path = "/" + name
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), "drop database "+pgx.Identifier{name}.Sanitize()+" with (force)")
		mustBeNil(t, err)
		mustBeNil(t, conn.Close(context.Background()))
	})
	for args, code := range map[string]int{
		"serve": exitUsage, "serve --migrate": exitUsage, "serve --check": exitFailed, "migrate up": exitUsage, "migrate version": exitUsage,
		"dev --listen=127.0.0.1:0": exitUsage,
	} {
		args := append(strings.Fields(args), "--database-url="+ascii.String())
		if args[0] == "serve" {
			args = append(args, "--listen=127.0.0.1:0")
		}
		got, stdout, stderr := call(t, nil, args...)
		const want = "The encoding of the database is SQL_ASCII, and Paddock needs UTF8. Give the URL of a database with it: create database"
		if got != code || !strings.Contains(strings.Join(strings.Fields(stdout+stderr), " "), want) {
			t.Errorf("%v: exit code %d, want %d and %q in:\n%s%s", args[:2], got, code, want, stdout, stderr)
		}
	}
}
