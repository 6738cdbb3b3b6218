package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// Variables that make the test of this file a worker, with the service and the user's database.
const (
	fencedHolder  = "PADDOCK_TEST_FENCED_WORKER"
	fencedService = "PADDOCK_TEST_FENCED_SERVICE"
	fencedBank    = "PADDOCK_TEST_FENCED_DATABASE"
)

// TestPausedWorkerCannotWriteToAFencedTable uses processes and a table of the user. Worker A is stopped for longer
// than its lease lasts, B is granted the lock and writes, A continues and writes.
func TestPausedWorkerCannotWriteToAFencedTable(t *testing.T) {
	if os.Getenv(fencedHolder) != "" {
		runFencedWorker(t)
		return
	}
	t.Parallel()
	service, bank := serveHere(t, pgtest.URL(t)), pgtest.EmptyURL(t)
	if code, _, stderr := call(t, nil, "fence", "install", "--database-url", bank); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	pgtest.Exec(t, pgtest.Connect(t, bank), "create table accounts (id int primary key, balance int); insert into accounts values (42, 100)")

	a := startFencedWorker(t, "A", service, bank)
	tokenA := a.Stdout.Await(t, `granted token (\d+)`)
	a.write("10")
	a.Stdout.Await(t, `(the balance is 90)`)
	a.signal(syscall.SIGSTOP)

	b := startFencedWorker(t, "B", service, bank)
	tokenB := b.Stdout.Await(t, `granted token (\d+)`) // A's lease is over
	b.write("20")
	b.Stdout.Await(t, `(the balance is 70)`)

	a.write("30")
	a.signal(syscall.SIGCONT)
	if got, want := a.Stdout.Await(t, `refused: (.+)`), fmt.Sprintf("stale_token PF001 %s %s", tokenA,
		tokenB); got != want {
		t.Errorf("A was refused with %s, want %s", got, want)
	}

	if balance := pgtest.Number(t, pgtest.Connect(t, bank), "select balance from accounts"); balance != 70 {
		t.Errorf("the balance is %d", balance)
	}
	for _, worker := range []*fencedWorker{a, b} {
		worker.close()
	}
}

// A fencedWorker is a process that withdraws the amounts written to its input.
type fencedWorker struct {
	*process
	t     *testing.T
	input io.WriteCloser
}

func startFencedWorker(t *testing.T, holder, service, bank string) *fencedWorker {
	t.Helper()
	p := newProcess(t, fencedHolder+"="+holder, fencedService+"="+service, fencedBank+"="+bank)
	input, err := p.Cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Start(t)
	return &fencedWorker{p, t, input}
}

func (p *fencedWorker) write(amount string) {
	p.t.Helper()
	if _, err := io.WriteString(p.input, amount+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fencedWorker) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// close ends the worker.
func (p *fencedWorker) close() {
	p.t.Helper()
	if err := p.input.Close(); err != nil {
		p.t.Error(err)
	}
	if code := p.Exit(p.t); code != exitOK {
		p.t.Errorf("%s ended with %d:\n%s", p.Cmd.Args, code, p.Stdout)
	}
}

// runFencedWorker waits for the lock, and never checks whether it still holds it.
func runFencedWorker(t *testing.T) {
	locks := replica.Connect(t, client.Options{BaseURL: os.Getenv(fencedService)})
	pool, err := pgxpool.New(t.Context(), os.Getenv(fencedBank))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	grant, err := locks.Acquire(t.Context(), lock.Acquire{
		Locks: lock.One("accounts"), LeaseID: lock.LeaseID(uuid.New()), Holder: os.Getenv(fencedHolder),
		TTL: 500 * time.Millisecond, Wait: lock.MaxWait,
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("granted token", grant.Token)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		amount, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(withdraw(t, pool, grant.Token, amount))
	}
}

// withdraw returns the outcome as text.
func withdraw(t *testing.T, pool *pgxpool.Pool, token lock.Token, amount int) string {
	var balance int
	err := pgfence.Tx(t.Context(), pool, "accounts", token, func(tx pgx.Tx) error {
		const sql = "update accounts set balance = balance - $1 where id = 42 returning balance"
		return tx.QueryRow(t.Context(), sql, amount).Scan(&balance)
	})
	refusal, said := new(lock.Error), new(pgconn.PgError)
	switch {
	case err == nil:
		return fmt.Sprintf("the balance is %d", balance)
	case errors.As(err, &refusal) && errors.As(err, &said):
		return fmt.Sprintf("refused: %s %s %d %d", refusal.Code, said.Code, refusal.Token, refusal.Newest)
	default:
		return fmt.Sprintf("failed: %v", err)
	}
}
