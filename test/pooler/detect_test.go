package pooler_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/test/internal/pgbouncer"
)

// openAll makes the pooler open size connections to the server.
func openAll(t *testing.T, url string, size int) {
	t.Helper()
	var clients []*pgconn.PgConn
	for range size {
		clients = append(clients, connect(t, url))
	}
	for _, statement := range []string{"begin", "rollback"} {
		for _, c := range clients {
			if _, err := c.Exec(t.Context(), statement).ReadAll(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAPoolerInTransactionModeIsFound(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 20} {
		t.Run(fmt.Sprintf("%d connections", size), func(t *testing.T) {
			t.Parallel()
			url := pgbouncer.Start(t, pgtest.URL(t), "transaction", size)
			for range 20 {
				if !detect(t, url) {
					t.Fatal("the pooler was not found")
				}
			}
		})
	}
}

// TestARoundRobinPoolerIsFound uses a pooler that assigns the connection that was idle longest.
func TestARoundRobinPoolerIsFound(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("%d connections", size), func(t *testing.T) {
			t.Parallel()
			url := pgbouncer.Start(t, pgtest.URL(t), "transaction", size, "server_round_robin = 1")
			openAll(t, url, size)
			for range 20 {
				if !detect(t, url) {
					t.Fatal("the pooler was not found")
				}
			}
		})
	}
}

// TestConcurrentDetectionsFindThePooler runs detections that compete for backends. They are few, because Detect gives
// up after five seconds.
func TestConcurrentDetectionsFindThePooler(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 20} {
		t.Run(fmt.Sprintf("%d connections", size), func(t *testing.T) {
			t.Parallel()
			url := pgbouncer.Start(t, pgtest.URL(t), "transaction", size)
			var all sync.WaitGroup
			for range 4 {
				a, b := connect(t, url), connect(t, url)
				all.Go(func() {
					if found, err := poolmode.Detect(t.Context(), a, b); err != nil || !found {
						t.Errorf("found: %t, %v", found, err)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestAPoolerInSessionModeIsNotReported(t *testing.T) {
	t.Parallel()
	url := pgbouncer.Start(t, pgtest.URL(t), "session", 20)
	for range 5 {
		if detect(t, url) {
			t.Fatal("session mode was reported as transaction mode")
		}
	}
}

// TestAPoolerWithoutAFreeConnectionIsNotReported uses a pooler in session mode with one connection
// to the server. The second client waits for it until the timeout.
func TestAPoolerWithoutAFreeConnectionIsNotReported(t *testing.T) {
	t.Parallel()
	if detect(t, pgbouncer.Start(t, pgtest.URL(t), "session", 1)) {
		t.Error("session mode was reported as transaction mode")
	}
}
