package postgres

import (
	"context"

	"github.com/paddock-lock/paddock/bench/front"
	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// Transaction keeps leases as rows, with one transaction per request, called in process.
type Transaction struct {
	Database
	leases leases
}

// Name implements system.System.
func (*Transaction) Name() string { return "pg-transaction" }

// Title implements system.System.
func (*Transaction) Title() string { return "one transaction a request (pgx, no HTTP)" }

// Start implements system.System.
func (t *Transaction) Start(ctx context.Context, dir string) (err error) {
	if err := t.Database.Start(ctx, dir); err != nil {
		return err
	}
	if err := createLeases(ctx, t.Target()); err != nil {
		return err
	}
	t.leases, err = openLeases(ctx, t.Target())
	return err
}

// Stop implements system.System.
func (t *Transaction) Stop() error {
	if t.leases.pool != nil {
		t.leases.pool.Close()
		t.leases.pool = nil
	}
	return t.Database.Stop()
}

// Client implements system.System. All clients share one connection pool.
func (t *Transaction) Client(context.Context) (system.Client, error) {
	return lease.NewClient(t.leases, func() error { return nil }), nil
}

// FrontKind is the kind of the front for Transaction.
const FrontKind = "postgres"

// HTTP returns Transaction behind HTTP and JSON.
func HTTP() system.PostgresBacked {
	t := new(Transaction)
	f := front.New("pg-transaction-http", "one transaction a request, behind a Go HTTP handler", FrontKind, t)
	return postgresBackedFront{f, t}
}

// A postgresBackedFront is a Transaction behind a front.
type postgresBackedFront struct {
	*front.System
	behind *Transaction
}

// DatabaseURL implements system.PostgresBacked.
func (f postgresBackedFront) DatabaseURL() string { return f.behind.DatabaseURL() }

// OpenFront opens the store of such a front.
func OpenFront(ctx context.Context, url string) (lease.Store, error) { return openLeases(ctx, url) }
