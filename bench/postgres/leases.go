package postgres

import (
	"context"
	_ "embed" // the statements
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

var (
	//go:embed sql/schema.sql
	schemaSQL string
	//go:embed sql/lock.sql
	lockSQL string
	//go:embed sql/take.sql
	takeSQL string
	//go:embed sql/renew.sql
	renewSQL string
	//go:embed sql/release.sql
	releaseSQL string
)

// The best values found for 64 clients with a name each and for 32 clients with one name.
const (
	connections  = 64                    // in the pool
	pollInterval = 20 * time.Millisecond // mean pause between attempts for a held lock
)

// leases is a lease.Store in a table, with one transaction per call. Transactions are not canceled,
// because a canceled one may have been committed.
type leases struct{ pool *pgxpool.Pool }

// openLeases connects to the database. The table must exist; see createLeases.
func openLeases(ctx context.Context, url string) (leases, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return leases{}, err
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return leases{pool}, err
}

func createLeases(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, schemaSQL)
	return errors.Join(err, conn.Close(ctx))
}

func (l leases) Acquire(ctx context.Context, name string, wait bool) (lease.Grant, error) {
	id := uuid.NewString()
	return lease.Poll(ctx, wait, pollInterval, func() (lease.Grant, error) {
		token, err := l.try(context.WithoutCancel(ctx), name, id)
		return lease.Grant{ID: id, Token: token}, err
	})
}

// try locks the row before it reads the clock and draws the token.
func (l leases) try(ctx context.Context, name, id string) (token int64, err error) {
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		if err := lockRow(ctx, tx, name); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, takeSQL, name, id, lease.TTL).Scan(&token)
		if errors.Is(err, pgx.ErrNoRows) {
			return system.ErrHeld
		}
		return err
	})
	return token, err
}

// lockRow locks the row of the name and creates it if needed.
func lockRow(ctx context.Context, tx pgx.Tx, name string) error {
	tag, err := tx.Exec(ctx, lockSQL, name)
	if err != nil || tag.RowsAffected() > 0 {
		return err
	}
	if _, err := tx.Exec(ctx, "insert into leases (name) values ($1) on conflict do nothing", name); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, lockSQL, name)
	return err
}

func (l leases) Renew(ctx context.Context, name, id string) error {
	ctx = context.WithoutCancel(ctx)
	return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		if err := lockRow(ctx, tx, name); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, renewSQL, name, id, lease.TTL)
		if err == nil && tag.RowsAffected() == 0 {
			return lease.ErrLost
		}
		return err
	})
}

func (l leases) Release(ctx context.Context, name, id string) error {
	tag, err := l.pool.Exec(context.WithoutCancel(ctx), releaseSQL, name, id)
	if err == nil && tag.RowsAffected() == 0 {
		return lease.ErrLost
	}
	return err
}
