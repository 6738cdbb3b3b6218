//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/migrations"
)

// advisoryKey is the advisory lock held while a template is created: "pgtest" in ASCII.
const advisoryKey int64 = 0x706774657374

// makeTemplate creates the template of the test databases, unless it exists, and returns its name. The name contains
// the hash of the migrations. A finished template allows no connections: one that does is unfinished and is replaced.
func makeTemplate(ctx context.Context, admin string) (name string, err error) {
	name = "paddock_template_" + migrations.Hash()[:16]
	url, err := withDatabase(admin, name)
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, "select pg_catalog.pg_advisory_lock($1)", advisoryKey); err != nil {
		return "", err
	}
	finished, err := isFinished(ctx, conn, name)
	if err != nil || finished {
		return name, err
	}
	for _, sql := range []string{
		"drop database if exists " + quoted(name) + " with (force)",
		"create database " + quoted(name) + " template template0",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("%s: %w", sql, err)
		}
	}
	if err := migrations.Up(ctx, url, "", nil); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "alter database "+quoted(name)+" allow_connections false")
	return name, err
}

func isFinished(ctx context.Context, conn *pgx.Conn, name string) (finished bool, err error) {
	err = conn.QueryRow(
		ctx,
		"select exists (select from pg_catalog.pg_database where datname = $1 and not datallowconn)",
		name,
	).Scan(&finished)
	return finished, err
}
