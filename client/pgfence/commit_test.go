package pgfence_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// newAccountsCountingInterruptions returns a pool like newAccounts, and the number of interruptions
// of its connections by ended contexts.
func newAccountsCountingInterruptions(t *testing.T, url string) (pool *pgxpool.Pool, interruptions *atomic.Int32) {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = "public" // not the schema paddock, which may have the locks
	interruptions = new(atomic.Int32)
	config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return watcher{&pgconn.CancelRequestContextWatcherHandler{Conn: c}, interruptions}
	}
	return openConfig(t, config, paddock.InstallFence), interruptions
}

// A watcher cancels statements when their contexts end, and counts that.
type watcher struct {
	ctxwatch.Handler
	interruptions *atomic.Int32
}

func (w watcher) HandleCancel(ctx context.Context) {
	w.interruptions.Add(1)
	w.Handler.HandleCancel(ctx)
}

// staysTrue checks the condition a hundred times.
func staysTrue(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for range 100 {
		if !condition() {
			t.Errorf("this stopped being true: %s", what)
			return
		}
	}
}

// slowCommits makes each commit of a write to accounts wait for an advisory lock.
const slowCommits = `
create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(42); return null; end $$;
create constraint trigger slow_commit after update on accounts deferrable initially deferred for each row execute function wait();`

func TestASentCommitIsNotCanceled(t *testing.T) {
	t.Parallel()
	pool, interruptions := newAccountsCountingInterruptions(t, pgtest.EmptyURL(t))
	run(t, pool, slowCommits)
	outside, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outside.Exec(t.Context(), "select pg_advisory_lock(42)"); err != nil {
		t.Fatal(err)
	}
	ctx, lose := context.WithCancelCause(t.Context())
	ended := startTx(ctx, pool, withdraw10(ctx))
	await.Until(t, "the commit waits", func() bool {
		return count(t, pool, waitingCommits) == 1
	})
	lose(errLost)
	if err := <-ended; !errors.Is(err, lock.ErrUnknownOutcome) || !errors.Is(err, lock.ErrLeaseLost) {
		t.Errorf("got %v, want unknown_outcome and its cause", err)
	}
	if n := pool.Stat().AcquiredConns(); n != 1 {
		t.Errorf("%d connections are taken, want that of the commit", n)
	}
	staysTrue(t, "the commit waits", func() bool {
		return count(t, pool, waitingCommits) == 1
	})
	if err := outside.Close(t.Context()); err != nil { // releases the advisory lock
		t.Fatal(err)
	}
	waitUntilIdle(t, pool)
	if b, n := balance(t, pool), interruptions.Load(); b != 90 || n != 0 {
		t.Errorf("the balance is %d after %d interruptions", b, n)
	}
}

// TestACommitWaitingForAStandbyStaysInvisible loses the lease while the commit waits for a standby. A
// cancel request would make the write visible although no standby has it.
func TestACommitWaitingForAStandbyStaysInvisible(t *testing.T) {
	t.Parallel()
	_, url := pgtest.Server(t)
	pool, interruptions := newAccountsCountingInterruptions(t, url)
	resume := withoutStandby(t, pool)
	ctx, lose := context.WithCancelCause(t.Context())
	ended := startTx(ctx, pool, withdraw10(ctx))
	await.Until(t, "the commit waits for a standby", func() bool { return unconfirmed(t, pool) == 2 })
	lose(errLost)
	if err := <-ended; !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("got %v, want unknown_outcome", err)
	}
	staysTrue(t, "the commit waits and shows nothing", func() bool { return balance(t, pool) == 100 && unconfirmed(t, pool) == 2 })
	resume()
	waitUntilIdle(t, pool)
	if b, n := balance(t, pool), interruptions.Load(); b != 90 || n != 0 {
		t.Errorf("the balance is %d after %d interruptions", b, n)
	}
}

// waitingCommits counts the commits in this database that wait for an advisory lock.
const waitingCommits = `select count(*) from pg_locks where locktype = 'advisory' and not granted
	and database = (select oid from pg_database where datname = current_database())`

// withoutStandby makes each commit of the server wait for a standby that does not exist. It returns
// when a commit waits, because the server needs a moment to reload its configuration.
func withoutStandby(t *testing.T, pool *pgxpool.Pool) (resume func()) {
	for _, sql := range []string{
		"create table canary ()", "alter system set synchronous_standby_names = 'missing'", "select pg_reload_conf()",
	} {
		run(t, pool, sql)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			_, err := pool.Exec(t.Context(), "insert into canary default values")
			select {
			case <-stop:
				stopped <- err
				return
			default:
			}
		}
	}()
	await.Until(t, "a commit waits", func() bool { return unconfirmed(t, pool) == 1 })
	return func() {
		close(stop)
		run(t, pool, "alter system reset synchronous_standby_names")
		run(t, pool, "select pg_reload_conf()")
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

// unconfirmed returns how many commits wait for a standby.
func unconfirmed(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return count(t, pool, "select count(*) from pg_stat_activity where wait_event = 'SyncRep'")
}

// TestFailedCommits checks that a refused commit is known to have failed, and that the outcome of one
// whose connection was closed is unknown.
func TestFailedCommits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		during  string // a statement of each commit
		unknown bool
	}{
		"a deferred check":        {"raise exception using errcode = '23514'", false},
		"a serialization failure": {"raise exception using errcode = '40001'", false},
		"a closed connection":     {"perform pg_terminate_backend(pg_backend_pid())", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newAccounts(t)
			run(t, pool, "create function fail() returns trigger language plpgsql as $$ begin "+c.during+`; return null; end $$;
				create constraint trigger fails after update on accounts deferrable initially deferred for each row execute function fail()`)
			err := <-startTx(t.Context(), pool, withdraw10(t.Context()))
			if err == nil || errors.Is(err, lock.ErrUnknownOutcome) != c.unknown {
				t.Errorf("got %v, want the outcome to be unknown: %t", err, c.unknown)
			}
			if pg := new(pgconn.PgError); !errors.As(err, &pg) {
				t.Errorf("%v does not wrap the server's error", err)
			}
			waitUntilIdle(t, pool)
		})
	}
}
