package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

func value[T any](t *testing.T, conn *pgx.Conn, sql string) T {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaIsLatest(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	version, err := migrations.Version(t.Context(), url, "")
	if err != nil || version != migrations.Latest() {
		t.Errorf("version %d, %v", version, err)
	}
	if got := value[int](t, pgtest.Connect(t, url), "select count(*) from paddock.records"); got != 0 {
		t.Errorf("a fresh database has %d locks", got)
	}
}

func TestEachCallReturnsAnotherDatabase(t *testing.T) {
	t.Parallel()
	a, b := pgtest.Conn(t), pgtest.Conn(t)
	if _, err := a.Exec(t.Context(), "create table mine ()"); err != nil {
		t.Fatal(err)
	}
	if value[bool](t, b, "select to_regclass('mine') is not null") {
		t.Error("the other database also has the table")
	}
}

func TestPoolUsesOneDatabase(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var got string
	if err := pool.QueryRow(t.Context(), "select current_database()").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if want := pool.Config().ConnConfig.Database; got != want {
		t.Errorf("the database is %s, want %s", got, want)
	}
}

func TestEmptyDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	conn := pgtest.Connect(t, pgtest.EmptyURL(t))
	if value[bool](t, conn, "select to_regnamespace('paddock') is not null") {
		t.Error("the schema paddock exists")
	}
}

func TestServerCanCrash(t *testing.T) {
	t.Parallel()
	s, url := pgtest.Server(t)
	if _, err := pgtest.Connect(t, url).Exec(t.Context(), "create table kept as select 42 as n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("a killed server answered")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := value[int](t, pgtest.Connect(t, url), "select n from kept"); got != 42 {
		t.Errorf("got %d", got)
	}
}
