package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/pgversion"
	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/migrations"
)

// Settings of connections, where the URL gives none.
const (
	usualConns     = 19 // pool_max_conns
	connectTimeout = 5 * time.Second
)

// choreConns are for what a store does unasked: beats, notices and the tail have one
// each; the census and the pruning, which can wait, have none of their own. fewestConns is the least pool_max_conns. Of the others a quarter may be
// with late commits, one with names locked outside, one with reads and fenced
// writes: the last is always there for deciding.
const (
	choreConns  = 3
	fewestConns = 4 + choreConns
)

// openPools connects. It returns the pool for deciding, whose connections have settings of
// their own, and the one for the rest. Pooled says that a pooler in transaction mode stands
// between: through it a statement that was prepared, or a setting, may be on another
// connection the next time.
func openPools(ctx context.Context, databaseURL string, pooled bool, log *slog.Logger) (deciding, rest *pgxpool.Pool, err error) {
	config, err := poolConfig(databaseURL, pooled)
	if err != nil {
		return nil, nil, err
	}
	decides := config.Copy()
	config.MaxConns = (config.MaxConns-choreConns)/4 + choreConns
	decides.MaxConns -= config.MaxConns
	config.MinConns, decides.MinConns = min(config.MinConns, config.MaxConns), min(decides.MinConns, decides.MaxConns)
	if !pooled {
		decides.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, sqlSettings, milliseconds(rowTimeout), false)
			return poolmode.Explain(err, poolmode.ToServe)
		}
	}
	if rest, err = openPool(ctx, config); err != nil {
		return nil, nil, err
	}
	err = checkVersion(ctx, rest, log)
	if err == nil && !pooled {
		err = refusePooler(ctx, rest)
	}
	if err != nil {
		rest.Close()
		return nil, nil, err
	}
	if deciding, err = openPool(ctx, decides); err != nil {
		rest.Close()
	}
	return deciding, rest, err
}

// checkVersion returns a *pgversion.TooOldError for a server that is too old. It logs a warning if the server is newer
// than every version that Paddock is tested on.
func checkVersion(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	version, err := pgversion.Require(ctx, conn.Conn().PgConn())
	if err == nil && !version.Tested() {
		log.Warn("PostgreSQL is newer than the versions tested", "version", version.String(), "newest_tested", pgversion.Newest)
	}
	return err
}

// refusePooler returns a poolmode.Error if the pool's connections lead through a pooler in
// transaction mode. It uses two of them.
func refusePooler(ctx context.Context, pool *pgxpool.Pool) error {
	a, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer a.Release()
	b, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer b.Release()
	return poolmode.Refuse(ctx, a.Conn().PgConn(), b.Conn().PgConn(), poolmode.ToServe)
}

func poolConfig(databaseURL string, pooled bool) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("the database URL: %w", err)
	}
	if !strings.Contains(databaseURL, "pool_max_conns") {
		config.MaxConns = usualConns
	}
	if config.MaxConns < fewestConns {
		return nil, fmt.Errorf("the database URL: pool_max_conns is %d; use %d or more", config.MaxConns, fewestConns)
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "paddock"
	}
	if pooled && !strings.Contains(databaseURL, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	config.ConnConfig.OnNotice = noteUnconfirmed
	config.ConnConfig.DialFunc = dial
	return config, nil
}

func openPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("the database does not answer: %w", err)
	}
	return pool, nil
}

// unconfirmedKey marks a connection on which a commit may have no standby's word.
const unconfirmedKey = "paddock.unconfirmed"

// noteUnconfirmed hears PostgreSQL say that a commit stopped waiting for its
// standbys: it calls that a success with a warning. The text of the warning is in
// the server's language, so every warning of its kind counts.
func noteUnconfirmed(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == "01000" {
		conn.CustomData()[unconfirmedKey] = true
	}
}

// errUnconfirmed says that a commit may be on the primary only.
var errUnconfirmed = errors.New("the wait for the standby to confirm the commit was cancelled")

// forget begins the listening for warnings anew, ahead of a commit.
func forget(conn *pgx.Conn) { delete(conn.PgConn().CustomData(), unconfirmedKey) }

// confirmed returns errUnconfirmed if there was a warning since forget.
func confirmed(conn *pgx.Conn) error {
	if _, marked := conn.PgConn().CustomData()[unconfirmedKey]; marked {
		return errUnconfirmed
	}
	return nil
}

// Ready returns nil if the database answers, commits too, and its schema is the
// one that this binary works with.
func (s *Store) Ready(ctx context.Context) error {
	if n := len(s.late); n > 0 {
		return fmt.Errorf("%d commits unanswered for more than %v", n, commitPatience)
	}
	var version int64
	var dirty bool
	if err := s.pool.QueryRow(ctx, sqlSchemaVersion).Scan(&version, &dirty); err != nil {
		return fmt.Errorf("the schema's version: %w", err)
	}
	if dirty || version < int64(migrations.Latest()) {
		return fmt.Errorf("the schema is at version %d (dirty: %t), this binary needs %d: run paddock migrate up",
			version, dirty, migrations.Latest())
	}
	e, err := scanEpoch(s.pool.QueryRow(ctx, sqlEpoch))
	if err == nil && e.quorum && !e.replicates {
		err = errNoStandby
	}
	return err
}
