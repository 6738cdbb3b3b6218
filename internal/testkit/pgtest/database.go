//go:build unix

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
	err = s.maintain(t.Context(), func(conn *pgx.Conn) error { return clone(t.Context(), conn, template, name) })
	if err != nil {
		t.Fatalf("pgtest: creating a database: %v", err)
	}
	t.Cleanup(func() { s.drop(t, name) })
	s.checked.Do(func() { s.mismatch = assertDatabase(t.Context(), fresh, name) })
	if s.mismatch != nil {
		t.Fatalf("pgtest: %v", s.mismatch)
	}
	return fresh
}

func (s *server) drop(t testing.TB, name string) {
	switch {
	case !t.Failed():
		err := s.maintain(context.Background(), func(conn *pgx.Conn) error {
			_, err := conn.Exec(context.Background(), "drop database "+quoted(name)+" with (force)")
			return err
		})
		if err != nil {
			t.Errorf("pgtest: dropping the database: %v", err)
		}
	case s.persistent:
		t.Logf("pgtest: the database %s is kept for inspection", name)
	default:
		t.Logf("pgtest: the database %s ends with this test run; set %s to keep it", name, urlVariable)
	}
}

// maintain calls use with a connection to the maintenance database, which it keeps for the next call.
func (s *server) maintain(ctx context.Context, use func(*pgx.Conn) error) (err error) {
	s.mu.Lock()
	var conn *pgx.Conn
	if n := len(s.idle); n > 0 {
		conn, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	s.mu.Unlock()
	if conn == nil {
		if conn, err = pgx.Connect(ctx, s.admin); err != nil {
			return err
		}
	}
	if err := use(conn); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, conn)
	return nil
}

// close closes the idle connections to the maintenance database.
func (s *server) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, conn := range s.idle {
		errs = append(errs, conn.Close(ctx))
	}
	s.idle = nil
	return errors.Join(errs...)
}

// clone creates a database from a template. Copying files, where the server supports it, is three times as fast for a
// small template.
func clone(ctx context.Context, conn *pgx.Conn, template, name string) error {
	sql := "create database " + quoted(name) + " template " + quoted(template)
	version := conn.PgConn().ParameterStatus("server_version")
	major, err := strconv.Atoi(regexp.MustCompile(`^\d*`).FindString(version))
	if err != nil {
		return fmt.Errorf("the server has the version %q: %w", version, err)
	}
	if major >= 15 {
		sql += " strategy file_copy"
	}
	_, err = conn.Exec(ctx, sql)
	return err
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
