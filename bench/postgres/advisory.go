package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/paddock-lock/paddock/bench/system"
)

// Advisory uses PostgreSQL's advisory locks at session level. Each client has its own connection, because
// the session holds the lock.
type Advisory struct{ Database }

// Name implements system.System.
func (*Advisory) Name() string { return "pg-advisory" }

// Title implements system.System.
func (*Advisory) Title() string { return "PostgreSQL advisory lock (volatile, no token, no TTL)" }

// Client implements system.System.
func (a *Advisory) Client(ctx context.Context) (system.Client, error) {
	config, err := pgx.ParseConfig(a.Target())
	if err != nil {
		return nil, err
	}
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { // lets a waiting call be canceled
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 10 * time.Second}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return session{conn}, nil
}

// A session is a client with its own connection.
type session struct{ conn *pgx.Conn }

func (s session) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	if wait {
		_, err := s.conn.Exec(ctx, "select pg_advisory_lock(hashtextextended($1, 0))", name)
		return advisory{s.conn, name}, err
	}
	var got bool
	err := s.conn.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended($1, 0))", name).Scan(&got)
	if err == nil && !got {
		err = system.ErrHeld
	}
	return advisory{s.conn, name}, err
}

func (s session) Close() error { return s.conn.Close(context.Background()) }

// advisory is a lock held by a session.
type advisory struct {
	conn *pgx.Conn
	name string
}

func (advisory) Token() int64                { return 0 }
func (advisory) Renew(context.Context) error { return system.ErrUnsupported }

func (a advisory) Release(ctx context.Context) error {
	var had bool
	err := a.conn.QueryRow(ctx, "select pg_advisory_unlock(hashtextextended($1, 0))", a.name).Scan(&had)
	if err == nil && !had {
		return fmt.Errorf("%s: %w", a.name, errNotHeld)
	}
	return err
}

var errNotHeld = errors.New("the session does not hold the lock")
