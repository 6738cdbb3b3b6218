package measure_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/bench/measure"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/internal/pgserver"
)

// here is a system that consists of this process and a database.
type here struct {
	system.System
	url string
}

func (here) Processes() []system.Process {
	return []system.Process{{Role: system.Server, PID: os.Getpid()}}
}
func (h here) DatabaseURL() string { return h.url }

// database starts a PostgreSQL server and returns its URL.
func database(t *testing.T) string {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server.URL("postgres")
}

func TestProbeMeasuresWAL(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), database(t)
	probe, err := measure.Open(ctx, here{url: url})
	if err != nil {
		t.Fatal(err)
	}
	before, err := probe.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "create table t as select i from generate_series(1, 10000) i; delete from t"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(ctx); err != nil { // a closed session has reported all its counts
		t.Fatal(err)
	}
	after, err := probe.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if grown := after.WAL.Bytes - before.WAL.Bytes; grown < 10_000*20 {
		t.Errorf("the WAL has grown by %d bytes", grown)
	}
	if after.At.Before(before.At) || after.Client < before.Client || after.CPU[system.Server] < before.CPU[system.Server] {
		t.Errorf("from %+v to %+v", before, after)
	}
	if _, ok, err := probe.Fsyncs(ctx); !ok || err != nil {
		t.Errorf("fsyncs: %v, %v", ok, err)
	}
	if err := probe.Close(); err != nil {
		t.Error(err)
	}
}
