package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// database creates a database for t from the template, and drops it after the test unless that failed.
func (s *server) database(t testing.TB, template string) string {
	t.Helper()
	name := nameFor(t.Name())
	fresh, err := withDatabase(s.admin, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := clone(t.Context(), s.admin, template, name); err != nil {
		t.Fatalf("pgtest: creating a database: %v", err)
	}
	t.Cleanup(func() { s.drop(t, name) })
	if err := assertDatabase(t.Context(), fresh, name); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return fresh
}

func (s *server) drop(t testing.TB, name string) {
	switch {
	case !t.Failed():
		if err := exec(context.Background(), s.admin, "drop database "+quoted(name)+" with (force)"); err != nil {
			t.Errorf("pgtest: dropping the database: %v", err)
		}
	case s.persistent:
		t.Logf("pgtest: the database %s is kept for inspection", name)
	default:
		t.Logf("pgtest: the database %s ends with this process; set %s to keep it", name, urlVariable)
	}
}

// clone creates a database from a template. Copying files, where the server supports it, is three times as fast for a
// small template.
func clone(ctx context.Context, admin, template, name string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	sql := "create database " + quoted(name) + " template " + quoted(template)
	version := conn.PgConn().ParameterStatus("server_version")
	major, err := strconv.Atoi(regexp.MustCompile(`^\d*`).FindString(version))
	if err == nil && major >= 15 {
		sql += " strategy file_copy"
	}
	if err == nil {
		_, err = conn.Exec(ctx, sql)
	}
	return errors.Join(err, conn.Close(ctx))
}

// assertDatabase checks that the URL leads to the database, before a test writes there.
func assertDatabase(ctx context.Context, url, name string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	var current string
	err = conn.QueryRow(ctx, "select current_database()").Scan(&current)
	if err == nil && current != name {
		err = fmt.Errorf("the URL of database %s leads to %s", name, current)
	}
	return errors.Join(err, conn.Close(ctx))
}

// withDatabase returns the URL admin with another database.
func withDatabase(admin, name string) (string, error) {
	u, err := url.Parse(admin)
	if err != nil {
		return "", err
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", errors.New("the URL of the server must begin with postgres://")
	}
	u.Path = "/" + name
	if query := u.Query(); query.Has("dbname") { // it would override the path
		query.Del("dbname")
		u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	}
	return u.String(), nil
}

// nameFor returns a unique database name that contains the name of the test: at most 63 bytes of a-z, 0-9 and _.
func nameFor(test string) string {
	words := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(test), "_")
	return words[:min(len(words), 50)] + "_" + strings.ToLower(rand.Text()[:12])
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
