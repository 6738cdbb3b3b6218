package pooler_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/test/internal/program"
)

// exitUsage is paddock's exit code for wrong usage.
const exitUsage = 64

// paddock is the program that all tests of this process run. It is a package variable because tests have no other way
// to share it.
var paddock program.Built

func TestMain(m *testing.M) { paddock.Main(m) }

func connect(t *testing.T, url string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Log(err) // a timeout may have closed it
		}
	})
	return conn
}

// detect returns what Detect finds on two new connections.
func detect(t *testing.T, url string) bool {
	t.Helper()
	found, err := poolmode.Detect(t.Context(), connect(t, url), connect(t, url))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
