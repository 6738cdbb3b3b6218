package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/pgversion"
	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/internal/schema"
)

const (
	// defaultConns is pool_max_conns, where the URL gives none.
	defaultConns = 19
	// taskConns is the number of connections for background tasks. Heartbeats, notifications and new events have one
	// each; what can wait shares them, see Unhurried.
	taskConns = 3
	// fewestConns is the least pool_max_conns. Of those beside taskConns a quarter may be in use by late commits, one
	// by calls on rows that other sessions have locked, and one by reads, fenced writes and sessions: one is always
	// left for decisions.
	fewestConns = 4 + taskConns
)

// Open connects to the database, for the tables in the schema. databaseURL is called for each connection, and so the
// password may change. The connections for decisions have settings of their own. pooled says that there is a pooler
// in transaction mode in between: through it a setting, or a prepared statement, may be on another connection the
// next time. tracer sees each statement, and may be nil. Open fails if the database does not answer before ctx ends,
// and with a *RightsError if its role lacks a right.
func Open(
	ctx context.Context, databaseURL func() (string, error), in schema.Name, pooled bool, tracer pgx.QueryTracer, log *slog.Logger,
) (*DB, error) {
	config, err := poolConfig(databaseURL, in, pooled)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = tracer
	config.BeforeConnect = func(_ context.Context, next *pgx.ConnConfig) error {
		fresh, err := poolConfig(databaseURL, in, pooled)
		if err != nil {
			return err
		}
		fresh.ConnConfig.Tracer = next.Tracer
		*next = *fresh.ConnConfig
		return nil
	}
	if !pooled {
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return pgconnect.Pin(ctx, conn.PgConn()) }
	}
	decides := config.Copy()
	config.MaxConns = (config.MaxConns-taskConns)/4 + taskConns
	decides.MaxConns -= config.MaxConns
	config.MinConns, decides.MinConns = min(config.MinConns, config.MaxConns), min(decides.MinConns, decides.MaxConns)
	share := config.MaxConns - taskConns
	d := &DB{Pooled: pooled, Schema: in, Log: log, Observer: observe.Nothing(), configure: config.BeforeConnect, guests: make(chan struct{}, share), reads: make(chan struct{}, max(share-1, 1))}
	decides.AfterConnect = d.connected
	if d.Rest, err = openPool(ctx, config); err != nil {
		return nil, err
	}
	err = d.checkVersion(ctx)
	if err == nil && !pooled {
		err = d.refusePooler(ctx)
	}
	if err == nil {
		_, err = d.CheckRights(ctx)
	}
	if err == nil {
		d.Deciding, err = openPool(ctx, decides)
	}
	if err != nil {
		d.Rest.Close()
		return nil, err
	}
	d.ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	return d, nil
}

// At returns the source of a URL that never changes, for Open.
func At(databaseURL string) func() (string, error) {
	return func() (string, error) { return databaseURL, nil }
}

// connected prepares a connection for decisions.
func (d *DB) connected(ctx context.Context, conn *pgx.Conn) error {
	d.made.Add(1)
	if d.Pooled {
		return nil // each transaction brings its settings along
	}
	if err := pgconnect.Pin(ctx, conn.PgConn()); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, sqlSettings, milliseconds(RowTimeout), false)
	return poolmode.Explain(err, poolmode.ToServe)
}

// checkVersion returns a *pgversion.TooOldError for a server that is too old. It logs a warning if the server is newer
// than every version that Paddock is tested on.
func (d *DB) checkVersion(ctx context.Context) error {
	return d.Rest.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		version, err := pgversion.Require(ctx, conn.Conn().PgConn())
		if err == nil && !version.Tested() {
			d.Log.Warn("PostgreSQL is newer than the versions tested", "version", version.String(), "newest_tested", pgversion.Newest)
		}
		return err
	})
}

// refusePooler returns a poolmode.Error if the connections lead through a pooler in transaction mode. It uses two.
func (d *DB) refusePooler(ctx context.Context) error {
	return d.Rest.AcquireFunc(ctx, func(a *pgxpool.Conn) error {
		return d.Rest.AcquireFunc(ctx, func(b *pgxpool.Conn) error {
			return poolmode.Refuse(ctx, a.Conn().PgConn(), b.Conn().PgConn(), poolmode.ToServe)
		})
	})
}

func poolConfig(source func() (string, error), in schema.Name, pooled bool) (*pgxpool.Config, error) {
	databaseURL, err := source()
	if err != nil {
		return nil, err
	}
	config, err := pgconnect.Parse(databaseURL)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(databaseURL, "pool_max_conns") {
		config.MaxConns = defaultConns
	}
	if config.MaxConns < fewestConns {
		return nil, fmt.Errorf("the database URL: pool_max_conns is %d; use %d or more", config.MaxConns, fewestConns)
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = applicationName(in)
	}
	if pooled && !strings.Contains(databaseURL, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	config.ConnConfig.OnNotice = noteUnconfirmed
	config.ConnConfig.DialFunc = dial
	return config, nil
}

// applicationName is what operators see in pg_stat_activity.
func applicationName(in schema.Name) string {
	if in.String() == string(schema.Default) {
		return "paddock"
	}
	return "paddock/" + in.String()
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

// Connect opens a connection beside those of the pools.
func (d *DB) Connect(ctx context.Context) (*pgx.Conn, error) {
	config := d.Rest.Config().ConnConfig
	if err := d.configure(ctx, config); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// Dial returns a connection for an operator's command. CommitBatch works on it as on those of a DB.
func Dial(ctx context.Context, databaseURL string) (*pgx.Conn, error) {
	parsed, err := pgconnect.Parse(databaseURL)
	if err != nil {
		return nil, err
	}
	config := parsed.ConnConfig
	config.OnNotice, config.DefaultQueryExecMode = noteUnconfirmed, pgx.QueryExecModeExec
	return pgx.ConnectConfig(ctx, config)
}

// WithConn runs f on a connection of its own, see Dial.
func WithConn(ctx context.Context, databaseURL string, f func(*pgx.Conn) error) error {
	conn, err := Dial(ctx, databaseURL)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(context.WithoutCancel(ctx)))
}

// When a connection that has gone silent is given up. A commit is never cancelled, so nothing else ends it.
const (
	silenceBeforeProbe = 5 * time.Second
	probeInterval      = 2 * time.Second
	probes             = 3
	maxUnacknowledged  = 15 * time.Second // for what was sent, where the system can be told
)

// dial connects to the database's host.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	probing := net.KeepAliveConfig{Enable: true, Idle: silenceBeforeProbe, Interval: probeInterval, Count: probes}
	d := net.Dialer{KeepAliveConfig: probing, Control: limitUnacknowledged}
	return d.DialContext(ctx, network, address)
}
