package pooler_test

import (
	"context"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/test/internal/program"
)

// exitUsage is paddock's exit code for wrong usage.
const exitUsage = 64

// paddock is the program that all tests of this process run. It is a package variable because tests have no other way
// to share it.
var paddock program.Built

func TestMain(m *testing.M) { paddock.Main(m) }

// start starts paddock. It is killed when the test ends.
func start(t *testing.T, args ...string) *proctest.Process {
	t.Helper()
	p := proctest.New(exec.Command(paddock.Path(t), args...))
	p.Start(t)
	return p
}

// startServe starts paddock serve, and returns its base URL, too.
func startServe(t *testing.T, databaseURL string, args ...string) (*proctest.Process, string) {
	t.Helper()
	p := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--database-url", databaseURL}, args...)...)
	return p, "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
}

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
