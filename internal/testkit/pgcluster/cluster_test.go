package pgcluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgcluster"
)

// quorum has each commit wait for one of the two standbys.
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

// exec runs a statement as a client does, by the URL that names all nodes.
func exec(t *testing.T, c *pgcluster.Cluster, sql string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pgcluster.StepTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // what counts is the statement
	_, err = conn.Exec(ctx, sql)
	return err
}

// kept is how many rows a client finds.
func kept(t *testing.T, c *pgcluster.Cluster) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	must(t, err)
	must(t, conn.QueryRow(t.Context(), "select count(*) from kept").Scan(&n))
	must(t, conn.Close(t.Context()))
	return n
}

func keep(t *testing.T, c *pgcluster.Cluster) {
	t.Helper()
	must(t, exec(t, c, "insert into kept values (1)"))
}

func ask(t *testing.T, n *pgcluster.Node, sql string) string {
	t.Helper()
	answer, err := n.Ask(t.Context(), sql)
	must(t, err)
	return answer
}

func TestWhatWasConfirmedSurvivesOneFailOverAfterAnother(t *testing.T) {
	t.Parallel()
	c := start(t, pgcluster.Options{Synchronous: quorum})
	for round := range 3 {
		keep(t, c)
		lost := c.Primary()
		must(t, lost.Kill())
		began := time.Now()
		promoted, err := c.Promote(t.Context())
		must(t, err)
		t.Logf("promoted %s after %v", promoted.Name, time.Since(began))
		keep(t, c)
		if promoted == lost || c.Primary() != promoted || kept(t, c) != 2*round+2 {
			t.Errorf("%s was promoted after %s, and %d rows are there, want %d", promoted.Name, lost.Name, kept(t, c), 2*round+2)
		}
		began = time.Now()
		must(t, c.Rejoin(t.Context(), lost))
		t.Logf("rejoined after %v", time.Since(began))
	}
	old := c.Primary()
	must(t, c.Switchover(t.Context()))
	if answer := ask(t, old, "show transaction_read_only"); answer != "on" || c.Primary() == old {
		t.Errorf("transaction_read_only is %s at the old primary, and %s takes writes", answer, c.Primary().Name)
	}
	must(t, c.Switchover(t.Context()))
	if n := kept(t, c); n != 6 {
		t.Errorf("%d rows, want 6", n)
	}
}

func TestThePromotionKeepsWhatAnyCommitWasConfirmedWith(t *testing.T) {
	t.Parallel()
	c := start(t, pgcluster.Options{Synchronous: quorum})
	old, behind, further := c.Primary(), c.Standbys()[0], c.Standbys()[1]
	must(t, behind.Cut(t.Context()))
	keep(t, c)
	conn, err := pgx.Connect(t.Context(), old.URL())
	must(t, err)

	must(t, behind.Kill())
	if promoted, err := c.Promote(t.Context()); err == nil || c.Primary() != old {
		t.Fatalf("%v was promoted while a standby was out of reach", promoted)
	}
	must(t, behind.Restart(t.Context()))
	if promoted, err := c.Promote(t.Context()); err != nil || promoted != further {
		t.Fatalf("promoted %v: %v", promoted, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, "insert into kept values (1)"); err == nil {
		t.Error("the old primary, which lives on, confirmed a commit")
	}
	must(t, conn.Close(t.Context()))
	must(t, c.Rejoin(t.Context(), old))
	keep(t, c)
	if n := kept(t, c); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

func TestAStandbyThatWasCutLosesWhatItHasNotReceived(t *testing.T) {
	t.Parallel()
	c := start(t, pgcluster.Options{})
	keep(t, c)
	paused(t, c.Primary())
	lagging := c.Standbys()[0]
	must(t, lagging.Cut(t.Context()))
	keep(t, c)
	must(t, c.Primary().Kill())
	must(t, lagging.Promote(t.Context()))
	if n := kept(t, c); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// paused checks that a node answers nobody until it goes on.
func paused(t *testing.T, n *pgcluster.Node) {
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

func TestABackupComesBackInThePrimarysPlace(t *testing.T) {
	t.Parallel()
	const timeline = "select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
	c := start(t, pgcluster.Options{})
	for way, at := range []string{pgcluster.AsCrashed: "00000001", pgcluster.FromArchive: "00000002"} {
		before := kept(t, c)
		must(t, c.Backup(t.Context()))
		keep(t, c)
		must(t, c.Restore(t.Context(), pgcluster.RestoreMode(way)))
		if n := kept(t, c); n != before {
			t.Errorf("%d rows, want %d", n, before)
		}
		if now := ask(t, c.Primary(), timeline); now != at {
			t.Errorf("the timeline is %s, want %s", now, at)
		}
		for _, n := range c.Standbys() {
			must(t, c.Rejoin(t.Context(), n))
		}
		keep(t, c)
	}
}
