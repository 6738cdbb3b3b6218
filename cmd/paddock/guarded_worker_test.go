package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// guardedWorker is the variable that makes the test of this file a worker. Its value is the lock's name.
const guardedWorker = "PADDOCK_TEST_GUARDED_WORKER"

// TestPausedGuardedWorkerWritesNothingMore stops processes that write continuously for longer than their leases last.
// No other client acquires their locks, so the fence would accept their writes: only their contexts stop them.
func TestPausedGuardedWorkerWritesNothingMore(t *testing.T) {
	if name := os.Getenv(guardedWorker); name != "" {
		runGuardedWorker(t, name)
		return
	}
	t.Parallel()
	service, bank := serveHere(t, pgtest.URL(t)), pgtest.EmptyURL(t)
	if code, _, stderr := call(t, nil, "fence", "install", "--database-url", bank); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	execSQL(t, bank, "create table written (by text, at timestamptz default clock_timestamp())")
	locks := replica.Connect(t, client.Options{BaseURL: service})
	for i := range 6 {
		name := fmt.Sprint("accounts:", i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, guardedWorker+"="+name, fencedService+"="+service, fencedBank+"="+bank)
			p.Start(t)
			token := p.Stdout.Await(t, `token (\d+)\nwrites`)
			if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			woken := awaitFree(t, locks, name)
			if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if code := p.Exit(t); code != exitOK {
				t.Errorf("exit code %d:\n%s", code, p.Stdout)
			}
			p.Stdout.Await(t, `(stopped: lease_lost)`)
			late, err := runSQL(t, bank, fmt.Sprintf("select count(*) from written where by = '%s' and at > '%s'", name,
				woken.Format(time.RFC3339Nano)))
			if err != nil || late != "0" {
				t.Errorf("%s writes with token %s after it continued: %v", late, token, err)
			}
		})
	}
}

// awaitFree returns the instant of the database at which the lock was found free.
func awaitFree(t *testing.T, locks lock.Service, name string) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	for w := (lock.Watch{Name: name, Wait: lock.MaxWait}); ; {
		l, err := locks.Watch(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		if l.State == lock.Free {
			return l.AsOf
		}
		w.Seen = l.Version()
	}
}

// runGuardedWorker writes until its context ends.
func runGuardedWorker(t *testing.T, name string) {
	locks, pool := fencedWorkerTargets(t)
	defer pool.Close()
	err := guard.Do(t.Context(), locks, name, guard.Options{TTL: 2 * time.Second},
		func(ctx context.Context, l *guard.Lease) error {
			fmt.Println("token " + strconv.FormatInt(int64(l.Token()), 10))
			for n := 0; ; n++ {
				if n == 3 {
					fmt.Println("writes")
				}
				if err := insertToken(ctx, pool, name, l.Token()); err != nil {
					return context.Cause(ctx)
				}
			}
		})
	fmt.Println("stopped:", err)
}

func insertToken(ctx context.Context, pool *pgxpool.Pool, name string, token lock.Token) error {
	return pgfence.Tx(ctx, pool, name, token, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into written values ($1)", name)
		return err
	})
}
