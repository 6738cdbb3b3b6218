package postgres

import (
	"context"
	"database/sql"
	"errors"

	"cirello.io/pglock"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// PGLock is the package cirello.io/pglock.
type PGLock struct {
	Database
	db    *sql.DB
	locks *pglock.Client
}

// Name implements system.System.
func (*PGLock) Name() string { return "pglock" }

// Title implements system.System.
func (*PGLock) Title() string { return "pglock (cirello.io/pglock)" }

// Start implements system.System.
func (p *PGLock) Start(ctx context.Context, dir string) (err error) {
	if err := p.Database.Start(ctx, dir); err != nil {
		return err
	}
	if p.db, err = sql.Open("pgx", p.Target()); err != nil {
		return err
	}
	p.db.SetMaxOpenConns(connections)
	p.db.SetMaxIdleConns(connections)
	p.locks, err = pglock.UnsafeNew(p.db, pglock.WithLeaseDuration(lease.TTL), pglock.WithHeartbeatFrequency(0))
	if err != nil {
		return err
	}
	return p.locks.CreateTable()
}

// Stop implements system.System.
func (p *PGLock) Stop() (err error) {
	if p.db != nil {
		err = p.db.Close()
		p.db = nil
	}
	return errors.Join(err, p.Database.Stop())
}

// Unordered implements system.Unordered.
func (*PGLock) Unordered() {}

// Client implements system.System. All clients share one connection pool.
func (p *PGLock) Client(context.Context) (system.Client, error) { return pglocker{p.locks}, nil }

type pglocker struct{ locks *pglock.Client }

func (p pglocker) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	return lease.Poll(ctx, wait, pollInterval, func() (system.Lease, error) {
		l, err := p.locks.AcquireContext(context.WithoutCancel(ctx), name, pglock.FailIfLocked())
		if errors.Is(err, pglock.ErrNotAcquired) {
			err = system.ErrHeld
		}
		if err != nil {
			return nil, err
		}
		return pglocked{p.locks, l, l.RecordVersionNumber()}, nil
	})
}

func (pglocker) Close() error { return nil }

// pglocked is a held lock. Its token is the version number of the row. pglock draws it before it knows
// whether it gets the lock, so tokens may be out of order.
type pglocked struct {
	locks *pglock.Client
	lock  *pglock.Lock
	token int64
}

func (p pglocked) Token() int64 { return p.token }

func (p pglocked) Renew(ctx context.Context) error { return p.locks.SendHeartbeat(ctx, p.lock) }

func (p pglocked) Release(ctx context.Context) error { return p.locks.ReleaseContext(ctx, p.lock) }
