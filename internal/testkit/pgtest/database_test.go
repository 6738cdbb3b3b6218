//go:build unix

package pgtest

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(M{M: m}) }

// A fakeTest is a test whose end and result the real test controls.
type fakeTest struct {
	testing.TB
	failed   bool
	cleanups []func()
	log      []string
}

func (f *fakeTest) Failed() bool               { return f.failed }
func (f *fakeTest) Cleanup(c func())           { f.cleanups = append(f.cleanups, c) }
func (f *fakeTest) Logf(s string, args ...any) { f.log = append(f.log, s) }

func (f *fakeTest) end() {
	for _, c := range f.cleanups {
		c()
	}
}

func TestOnlyAFailedTestKeepsItsDatabase(t *testing.T) {
	t.Parallel()
	for name, failed := range map[string]bool{"a test that passed": false, "a test that failed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeTest{TB: t, failed: failed}
			url := URL(fake)
			name := open(t, url) // an open connection does not prevent the drop
			fake.end()
			err := exec(t.Context(), url, "select 1")
			if failed != (err == nil) || failed != (len(fake.log) == 1) {
				t.Errorf("connecting: %v; log: %q", err, fake.log)
			}
			if err := exec(t.Context(), shared.s.admin, "drop database if exists "+quoted(name)+" with (force)"); err != nil {
				t.Error(err)
			}
		})
	}
}

// open opens a connection until t ends, and returns its database.
func open(t *testing.T, url string) (database string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Logf("closing a connection that the server has cut: %v", err)
		}
	})
	return conn.Config().Database
}

// cloneAt creates a database on a server of the test's own.
func cloneAt(t *testing.T, admin, template, name string) error {
	s := &server{admin: admin}
	err := s.maintain(t.Context(), func(conn *pgx.Conn) error { return clone(t.Context(), conn, template, name) })
	return errors.Join(err, s.close(t.Context()))
}

// TestTemplateIsCreatedOnce by processes that need it at the same time, and again if one died before the last step.
func TestTemplateIsCreatedOnce(t *testing.T) {
	t.Parallel()
	s, _ := Server(t)
	admin := s.URL("postgres")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			name, err := makeTemplate(t.Context(), admin)
			if err == nil {
				err = cloneAt(t, admin, name, nameFor(t.Name()))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	name, err := makeTemplate(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec(t.Context(), admin, "alter database "+name+" allow_connections true"); err != nil {
		t.Fatal(err)
	}
	if err := exec(t.Context(), s.URL(name), "drop table paddock.fenced"); err != nil {
		t.Fatal(err)
	}
	if _, err := makeTemplate(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	if err := cloneAt(t, admin, name, "again"); err != nil {
		t.Fatal(err)
	}
	if err := exec(t.Context(), s.URL("again"), "select from paddock.fenced"); err != nil {
		t.Error(err)
	}
}

func TestDatabaseNamesContainTheTestAndFit(t *testing.T) {
	t.Parallel()
	name := nameFor("TestStore/ein Fall: " + strings.Repeat("änd ", 30))
	if !regexp.MustCompile(`^teststore_ein_fall_nd_[a-z0-9_]+$`).MatchString(name) || len(name) != 63 {
		t.Errorf("%s, of %d bytes", name, len(name))
	}
	if name == nameFor("TestStore/ein Fall: "+strings.Repeat("änd ", 30)) {
		t.Error("two names are equal")
	}
}

func TestDatabaseIsReplacedInAURL(t *testing.T) {
	t.Parallel()
	for admin, want := range map[string]string{
		"postgres://u:p@h:1/postgres?sslmode=disable": "postgres://u:p@h:1/x?sslmode=disable",
		"postgresql://h": "postgresql://h/x",
		"postgres:///?host=/a%20b&dbname=old&user=u": "postgres:///x?host=%2Fa%20b&user=u",
	} {
		got, err := withDatabase(admin, "x")
		if got != want || err != nil {
			t.Errorf("%s became %s, %v", admin, got, err)
		}
		if config, err := pgx.ParseConfig(got); err != nil || config.Database != "x" {
			t.Errorf("%s cannot be parsed: %v", got, err)
		}
	}
	if got, err := withDatabase("host=/tmp user=u", "x"); err == nil {
		t.Errorf("an invalid URL became %s", got)
	}
}
