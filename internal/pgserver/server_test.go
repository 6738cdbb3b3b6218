package pgserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/pgserver"
)

func TestServerIsPrivateDurableAndUTF8(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Options{Settings: map[string]string{
		"max_connections": "33", "listen_addresses": "127.0.0.1", "port": "15432",
	}})
	for name, want := range map[string]string{
		"max_connections":    "33",
		"listen_addresses":   "",
		"port":               "5432",
		"fsync":              "on",
		"synchronous_commit": "on",
		"server_encoding":    "UTF8",
		"data_checksums":     "on",
	} {
		if got := query[string](t, s, "postgres", "show "+name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if got := query[string](t, s, "postgres", "select datcollate from pg_database where datname = 'postgres'"); got != "C" {
		t.Errorf("the locale is %q, not C", got)
	}
	if got := query[string](t, s, "postgres", "select current_user::text"); got != "paddock" {
		t.Errorf("the user is %q, not paddock", got)
	}
	if got := query[string](t, s, "postgres", "show server_version"); !strings.HasPrefix(got, s.Version()) ||
		s.Version() == "" {
		t.Errorf("the version is %q, not %q", s.Version(), got)
	}
	config, err := pgx.ParseConfig(s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(config.Host); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the socket is %v, %v", info, err)
	}
}

func TestTwoServersAtOnce(t *testing.T) {
	t.Parallel()
	a, b := start(t, pgserver.Options{}), start(t, pgserver.Options{})
	if a.URL("postgres") == b.URL("postgres") {
		t.Errorf("both are at %s", a.URL("postgres"))
	}
	const identifier = "select system_identifier from pg_control_system()"
	if query[int64](t, a, "postgres", identifier) != query[int64](t, b, "postgres", identifier) {
		t.Error("their data directories are no copies of one")
	}
	insertRow(t, a, "postgres")
	if query[bool](t, b, "postgres", "select to_regclass('kept') is not null") {
		t.Error("the servers share their data")
	}
}

func TestStopRemovesATemporaryDirectory(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Options{})
	for range 2 {
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	<-s.Done()
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", s.Dir(), err)
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("a stopped server restarted")
	}
}

func TestStopKillsAfterItsContextEnds(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// The shutdown may be faster than the cancellation.
	if err := s.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-s.Done()
}

func TestDataSurvivesStop(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "made", "on demand")
	first := start(t, pgserver.Options{Dir: dir, Database: "pasture"})
	insertRow(t, first, "pasture")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := start(t, pgserver.Options{Dir: dir, Database: "pasture"})
	if got := query[int](t, second, "pasture", "select n from kept"); got != 42 {
		t.Errorf("got %d", got)
	}
	if first.URL("pasture") != second.URL("pasture") {
		t.Errorf("the URL changed from %s to %s", first.URL("pasture"), second.URL("pasture"))
	}
}

func TestLongPathsGetAShortSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), strings.Repeat("long", 30))
	s := start(t, pgserver.Options{Dir: dir})
	if got := query[int](t, s, "postgres", "select 1"); got != 1 {
		t.Errorf("got %d", got)
	}
}

func TestDirectoryInUseNamesItsProcess(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	start(t, pgserver.Options{Dir: dir})
	_, err := pgserver.Start(t.Context(), pgserver.Options{Dir: dir})
	if !errors.Is(err, pgserver.ErrInUse) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("the error of the second server is %v", err)
	}
}

func TestOtherMajorVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	if err := start(t, pgserver.Options{Dir: dir}).Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := pgserver.Start(t.Context(), pgserver.Options{Dir: dir, Env: func(name string) (string, bool) {
		return "never", name == "PADDOCK_FETCH"
	}})
	if err == nil || !strings.Contains(err.Error(), "written by PostgreSQL 7") {
		t.Errorf("the error is %v", err)
	}
}

func TestBadSettingIsQuotedFromTheLog(t *testing.T) {
	t.Parallel()
	_, err := pgserver.Start(t.Context(), pgserver.Options{Settings: map[string]string{"max_connections": "many"}})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "max_connections"`) {
		t.Errorf("the error is %v", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := newDir(t)
	if _, err := pgserver.Start(ctx, pgserver.Options{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	start(t, pgserver.Options{Dir: dir}) // the cancelled start leaves nothing behind
}
