package database

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/pgversion"
	"github.com/paddock-lock/paddock/internal/poolmode"
)

// Settings of connections, where the URL gives none.
const (
	defaultConns   = 19 // pool_max_conns
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

// Open connects to the database. The connections for decisions have settings of their own. pooled says that there is a
// pooler in transaction mode in between: through it a setting, or a prepared statement, may be on another connection
// the next time. It fails if the database does not answer before ctx ends.
func Open(ctx context.Context, databaseURL string, pooled bool, log *slog.Logger) (*DB, error) {
	d := &DB{Pooled: pooled, Log: log}
	if err := d.openPools(ctx, databaseURL); err != nil {
		return nil, err
	}
	d.guests = make(chan struct{}, d.Rest.Config().MaxConns-choreConns)
	d.ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	return d, nil
}

func (d *DB) openPools(ctx context.Context, databaseURL string) error {
	config, err := poolConfig(databaseURL, d.Pooled)
	if err != nil {
		return err
	}
	decides := config.Copy()
	config.MaxConns = (config.MaxConns-choreConns)/4 + choreConns
	decides.MaxConns -= config.MaxConns
	config.MinConns, decides.MinConns = min(config.MinConns, config.MaxConns), min(decides.MinConns, decides.MaxConns)
	decides.AfterConnect = d.connected
	if d.Rest, err = openPool(ctx, config); err != nil {
		return err
	}
	err = checkVersion(ctx, d.Rest, d.Log)
	if err == nil && !d.Pooled {
		err = refusePooler(ctx, d.Rest)
	}
	if err == nil {
		d.Deciding, err = openPool(ctx, decides)
	}
	if err != nil {
		d.Rest.Close()
	}
	return err
}

// connected prepares a connection for decisions.
func (d *DB) connected(ctx context.Context, conn *pgx.Conn) error {
	d.made.Add(1)
	if d.Pooled {
		return nil // each transaction brings its settings along
	}
	_, err := conn.Exec(ctx, sqlSettings, milliseconds(RowTimeout), false)
	return poolmode.Explain(err, poolmode.ToServe)
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
		config.MaxConns = defaultConns
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
