package poolmode_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

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

// TestADirectConnectionIsNeverReported runs many detections on a busy server.
func TestADirectConnectionIsNeverReported(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for range soak.Rounds(3, 6) {
		busy := connect(t, url)
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := busy.Exec(t.Context(), "select count(*) from generate_series(1, 200000)").ReadAll(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var slowest time.Duration
	detections := soak.Rounds(10, 50)
	for range detections {
		a, b := connect(t, url), connect(t, url)
		begun := time.Now()
		found, err := poolmode.Detect(t.Context(), a, b)
		if err != nil || found {
			t.Fatalf("found: %t, %v", found, err)
		}
		slowest = max(slowest, time.Since(begun))
	}
	t.Logf("the slowest of %d detections took %v", detections, slowest)
	stop()
}

func TestALostConnectionIsAnError(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b := connect(t, url), connect(t, url)
	if _, err := b.Exec(t.Context(), fmt.Sprintf("select pg_terminate_backend(%d)", a.PID())).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if found, err := poolmode.Detect(t.Context(), a, b); err == nil || found {
		t.Errorf("found: %t, %v", found, err)
	}
}

func TestPreparedStatementMixUpsAreExplained(t *testing.T) {
	t.Parallel()
	for code, explained := range map[string]bool{"42P05": true, "26000": true, "42P01": false, "08006": false} {
		cause := fmt.Errorf("opening: %w", &pgconn.PgError{Code: code, Message: "prepared statement"})
		err := poolmode.Explain(cause, poolmode.ToServe)
		var pooler *poolmode.Error
		if errors.As(err, &pooler) != explained || !errors.Is(err, cause) || strings.Contains(err.Error(), code) == explained {
			t.Errorf("%s: %v", code, err)
		}
	}
	if err := poolmode.Explain(nil, poolmode.ToServe); err != nil {
		t.Error(err)
	}
}
