package pgcluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/test/internal/pgcluster"
)

// quorum makes each commit wait for one standby.
const quorum = "ANY 1 (a, b, c)"

func start(t *testing.T, opts pgcluster.Options) *pgcluster.Cluster {
	t.Helper()
	began := time.Now()
	c, err := pgcluster.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v", time.Since(began))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	must(t, exec(t, c, "create table kept (n integer)"))
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exec runs a statement through the URL of the cluster.
func exec(t *testing.T, c *pgcluster.Cluster, sql string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pgcluster.StepTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // only the statement matters
	_, err = conn.Exec(ctx, sql)
	return err
}

// rowCount returns the number of rows that a client reads.
func rowCount(t *testing.T, c *pgcluster.Cluster) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	must(t, err)
	must(t, conn.QueryRow(t.Context(), "select count(*) from kept").Scan(&n))
	must(t, conn.Close(t.Context()))
	return n
}

func insertRow(t *testing.T, c *pgcluster.Cluster) {
	t.Helper()
	must(t, exec(t, c, "insert into kept values (1)"))
}

func ask(t *testing.T, n *pgcluster.Node, sql string) string {
	t.Helper()
	answer, err := n.Ask(t.Context(), sql)
	must(t, err)
	return answer
}

func TestConfirmedCommitsSurviveRepeatedFailOver(t *testing.T) {
	t.Parallel()
	c := start(t, pgcluster.Options{Synchronous: quorum})
	for round := range 3 {
		insertRow(t, c)
		lost := c.Primary()
		must(t, lost.Kill())
		began := time.Now()
		promoted, err := c.Promote(t.Context())
		must(t, err)
		t.Logf("promoted %s after %v", promoted.Name, time.Since(began))
		insertRow(t, c)
		if promoted == lost || c.Primary() != promoted || rowCount(t, c) != 2*round+2 {
			t.Errorf(
				"%s was promoted after %s, and there are %d rows, want %d",
				promoted.Name,
				lost.Name,
				rowCount(t, c),
				2*round+2,
			)
		}
		began = time.Now()
		must(t, c.Rejoin(t.Context(), lost))
		t.Logf("rejoined after %v", time.Since(began))
	}
	old := c.Primary()
	must(t, c.Switchover(t.Context()))
	if answer := ask(t, old, "show transaction_read_only"); answer != "on" || c.Primary() == old {
		t.Errorf("transaction_read_only is %s on the old primary, and %s accepts writes", answer, c.Primary().Name)
	}
	must(t, c.Switchover(t.Context()))
	if n := rowCount(t, c); n != 6 {
		t.Errorf("%d rows, want 6", n)
	}
}

func TestPromotionKeepsConfirmedCommits(t *testing.T) {
	t.Parallel()
	c := start(t, pgcluster.Options{Synchronous: quorum})
	old, lagging, ahead := c.Primary(), c.Standbys()[0], c.Standbys()[1]
	must(t, lagging.Cut(t.Context()))
	insertRow(t, c)
	conn, err := pgx.Connect(t.Context(), old.URL())
	must(t, err)

	must(t, lagging.Kill())
	if promoted, err := c.Promote(t.Context()); err == nil || c.Primary() != old {
		t.Fatalf("%v was promoted while a standby was out of reach", promoted)
	}
	must(t, lagging.Restart(t.Context()))
	if promoted, err := c.Promote(t.Context()); err != nil || promoted != ahead {
		t.Fatalf("promoted %v: %v", promoted, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, "insert into kept values (1)"); err == nil {
		t.Error("the old primary confirmed a commit")
	}
	must(t, conn.Close(t.Context()))
	must(t, c.Rejoin(t.Context(), old))
	insertRow(t, c)
	if n := rowCount(t, c); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

func TestCutStandbyLosesLaterCommits(t *testing.T) {
	t.Parallel()
	c := start(t, pgcluster.Options{})
	insertRow(t, c)
	checkPause(t, c.Primary())
	lagging := c.Standbys()[0]
	must(t, lagging.Cut(t.Context()))
	insertRow(t, c)
	must(t, c.Primary().Kill())
	must(t, lagging.Promote(t.Context()))
	if n := rowCount(t, c); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// checkPause checks that a paused node does not answer.
func checkPause(t *testing.T, n *pgcluster.Node) {
	t.Helper()
	must(t, n.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if conn, err := pgx.Connect(ctx, n.URL()); err == nil {
		t.Error("a paused server answered")
		must(t, conn.Close(t.Context()))
	}
	must(t, n.Resume())
}

func TestRestore(t *testing.T) {
	t.Parallel()
	const timeline = "select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
	c := start(t, pgcluster.Options{})
	for mode, want := range []string{pgcluster.AsCrashed: "00000001", pgcluster.FromArchive: "00000002"} {
		before := rowCount(t, c)
		must(t, c.Backup(t.Context()))
		insertRow(t, c)
		must(t, c.Restore(t.Context(), pgcluster.RestoreMode(mode)))
		if n := rowCount(t, c); n != before {
			t.Errorf("%d rows, want %d", n, before)
		}
		if now := ask(t, c.Primary(), timeline); now != want {
			t.Errorf("the timeline is %s, want %s", now, want)
		}
		for _, n := range c.Standbys() {
			must(t, c.Rejoin(t.Context(), n))
		}
		insertRow(t, c)
	}
}
