package integration_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/store"
)

// A program is one process that locks in its own database without the service, as docs/embedding.md shows it.
type program struct {
	locks *store.Store
	pool  *pgxpool.Pool
}

func openProgram(ctx context.Context, databaseURL string) (*program, error) {
	if err := migrations.Up(ctx, databaseURL, "", slog.Default()); err != nil {
		return nil, err
	}
	locks, err := store.Open(ctx, databaseURL, store.Options{Log: slog.Default()})
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, databaseURL)
	if err != nil {
		locks.Close()
		return nil, err
	}
	return &program{locks, pool}, nil
}

func (p *program) close() {
	p.pool.Close()
	p.locks.Close()
}

// book adds one to the balance by a read and a write that must not interleave with those of another process.
func (p *program) book(ctx context.Context) error {
	o := guard.Options{Wait: time.Minute}
	return guard.Do(ctx, p.locks, "accounts:42", o, func(ctx context.Context, lease *guard.Lease) error {
		var balance int
		if err := p.pool.QueryRow(ctx, "select balance from accounts").Scan(&balance); err != nil {
			return err
		}
		return pgfence.Tx(ctx, p.pool, "accounts:42", lease.Token(), func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "update accounts set balance = $1", balance+1)
			return err
		})
	})
}

// TestTheProgramInTheDocumentCompiles as it is pasted.
func TestTheProgramInTheDocumentCompiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "```go\n")
	code, _, found := strings.Cut(code, "```\n")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil || !found {
		t.Fatalf("the program is not there: %v", err)
	}
	if said, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

func TestProgramsLockInTheirOwnDatabase(t *testing.T) {
	t.Parallel()
	const processes, bookings = 3, 20
	databaseURL := pgtest.EmptyURL(t)
	conn := pgtest.Connect(t, databaseURL)
	pgtest.Exec(t, conn, "create table accounts (balance int not null)")
	pgtest.Exec(t, conn, "insert into accounts values (0)")
	pgtest.Exec(t, conn, paddock.InstallFence)
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			p, err := openProgram(t.Context(), databaseURL) // all of them at once: the first one migrates
			if err != nil {
				t.Error(err)
				return
			}
			defer p.close() // also while others wait and hold
			for range bookings {
				if err := p.book(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if balance := pgtest.Number(t, conn, "select balance from accounts"); balance != processes*bookings {
		t.Errorf("the balance is %d after %d bookings", balance, processes*bookings)
	}
	if held := pgtest.Number(t, conn, "select count(*) from paddock.leases where state = 'held'"); held != 0 {
		t.Errorf("%d leases are left", held)
	}
}

// TestAProgramSharesItsLocksWithTheService: both are replicas of one deployment.
func TestAProgramSharesItsLocksWithTheService(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	remote := replica.Connect(t, client.Options{BaseURL: replica.Start(t, databaseURL)})
	p, err := openProgram(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	first, err := guard.Acquire(t.Context(), remote, "accounts:42", guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guard.Acquire(t.Context(), p.locks, "accounts:42", guard.Options{}); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("while the service holds the lock for another, the program gets %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		second, err := guard.Acquire(t.Context(), p.locks, "accounts:42", guard.Options{Wait: testTimeout})
		if err == nil && second.Token() <= first.Token() {
			t.Errorf("the token %d follows %d", second.Token(), first.Token())
		}
		if err == nil {
			err = second.Release(t.Context())
		}
		waiting <- err
	}()
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}
