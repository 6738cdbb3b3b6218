package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/store"
)

// A database is the flags of the database that stores the locks.
type database struct {
	URL  string `name:"database-url" placeholder:"URL" variable:"PADDOCK_DATABASE_URL,DATABASE_URL" help:"PostgreSQL that stores the locks: postgres://USER:PASSWORD@HOST:5432/DATABASE. Prefer the variable: other users of the machine can see arguments."`
	File string `name:"database-url-file" placeholder:"FILE" variable:"PADDOCK_DATABASE_URL_FILE" help:"File with the URL, in place of --database-url. It is read again for each new connection, so the password can be changed while the service runs."`
	cellFlag
	schemaFlag
	databaseWait
	configFlag
}

// A schemaFlag is the flag of the schema with Paddock's tables, of all commands that use them.
type schemaFlag struct {
	Schema schemaName `placeholder:"NAME" default:"paddock" variable:"PADDOCK_SCHEMA" help:"Schema with Paddock's tables: at most 40 of a-z, 0-9 and _, not beginning with a digit or pg_, no reserved word, and not public. Deployments with different schemas share a database, and no locks."`
}

// A schemaName is the name of a schema on the command line. It is not empty: a script or a template whose variable is
// not set must not act on the locks of another deployment.
type schemaName string

// UnmarshalText reads the name of a schema.
func (n *schemaName) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("is empty; give a name, or leave out the flag and PADDOCK_SCHEMA for " + string(schema.Default))
	}
	name, err := schema.Parse(string(text))
	*n = schemaName(name)
	return err
}

// A databaseWait is the flag of how long a command waits for its database, of all commands that connect to one.
type databaseWait struct {
	Wait time.Duration `name:"wait-database" default:"30s" variable:"PADDOCK_WAIT_DATABASE" help:"How long to wait at the start for a database that is not reachable yet."`
}

// url returns the URL as it is now. Its errors do not contain it.
func (d database) url() (string, error) {
	if d.File == "" {
		return d.URL, nil
	}
	text, err := os.ReadFile(d.File)
	if err != nil {
		return "", usagef("cannot read the database URL: %w", err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", usagef("the file %s is empty; it must contain the database URL", d.File)
	}
	return strings.TrimSpace(string(text)), nil
}

// connect opens a connection. Its statements work through a pooler in transaction mode, too.
func (d database) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := d.config()
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return pgx.ConnectConfig(ctx, config)
}

// config parses the URL. Its errors do not contain the password.
func (d database) config() (*pgx.ConnConfig, error) {
	url, err := d.url()
	if err != nil {
		return nil, err
	}
	if url == "" {
		return nil, usagef("the database is missing; set PADDOCK_DATABASE_URL or DATABASE_URL, or give --database-url or " +
			"--database-url-file, as postgres://USER:PASSWORD@HOST:5432/DATABASE (paddock dev needs none)")
	}
	config, err := pgconnect.Parse(url)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return config.ConnConfig, nil
}

// reached waits until the database answers and use succeeds, which must do nothing if it fails, or certainly all of it.
// It calls use again after errors that may pass. Other errors, such as a wrong password, fail at once. No error and no
// log record contains the URL.
func (d database) reached(ctx context.Context, log *slog.Logger, use func(url string) error) error {
	slow := time.AfterFunc(reportSlowAfter, func() { log.Warn("waiting for an answer of the database") })
	defer slow.Stop()
	return waitFor(ctx, log, d.Wait, func() error {
		config, err := d.config()
		if err != nil {
			return backoff.Permanent(err)
		}
		err = ping(ctx, config)
		slow.Stop()
		if err != nil {
			return markPermanent(err)
		}
		url, err := d.url()
		if err == nil {
			err = use(url)
		}
		return markPermanent(pgconnect.ExplainFailure(err))
	})
}

// reportSlowAfter is how long the first attempt to connect may take before it is logged that the command waits.
const reportSlowAfter = time.Second

// reportEvery is the least time between two records of a wait that goes on.
const reportEvery = 5 * time.Second

// waitFor calls attempt until it succeeds, for that time at most. It logs the first failure, then one every
// reportEvery, and that the wait ended well. Otherwise the error says so.
func waitFor(ctx context.Context, log *slog.Logger, limit time.Duration, attempt func() error) error {
	steps := backoff.NewExponentialBackOff()
	steps.InitialInterval, steps.MaxInterval = 100*time.Millisecond, time.Second
	start, next, final := time.Now(), time.Time{}, false
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := attempt()
		final = errors.As(err, new(*backoff.PermanentError))
		return struct{}{}, err
	},
		backoff.WithBackOff(steps),
		backoff.WithMaxElapsedTime(max(limit, time.Nanosecond)), // zero would mean no limit
		backoff.WithNotify(func(err error, _ time.Duration) {
			if now := time.Now(); !now.Before(next) {
				next = now.Add(reportEvery)
				log.Warn("database not reachable; retrying", "error", err, "waited", now.Sub(start), "limit", limit)
			}
		}))
	waited := time.Since(start)
	switch {
	case err == nil && !next.IsZero():
		log.Info("database reachable", "waited", waited)
	case err != nil && ctx.Err() == nil && readOnly(err):
		return unreachablef("the database answers, and accepts no writes%s: %w; name the primary in the database URL, or let the "+
			"role write: alter role NAME reset default_transaction_read_only;", after(waited, !next.IsZero()), lineError{err})
	case err != nil && ctx.Err() == nil && (!final || errors.As(err, new(*pgconn.ConnectError))):
		return unreachablef("cannot connect to the database%s: %w", after(waited, !next.IsZero()), lineError{err})
	}
	return err
}

// readOnly reports whether err says that the database, or the role, writes nothing at present.
func readOnly(err error) bool { return errors.Is(err, store.ErrReadOnly) || pgconnect.ReadOnly(err) }

// after says how long a wait took, if there was one.
func after(waited time.Duration, retried bool) string {
	if !retried {
		return ""
	}
	return " after " + short(waited)
}

// ping connects once.
func ping(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	err = pgconnect.ExplainFailure(err)
	if pgconnect.Denied(err) {
		return &failure{exitNotAllowed, fmt.Errorf("%w; run as the owner of the database: grant connect on database %s to %s;",
			err, pgx.Identifier{config.Database}.Sanitize(), pgx.Identifier{config.User}.Sanitize())}
	}
	if err != nil {
		return withoutParameter(err)
	}
	return conn.Close(ctx)
}

// withoutParameter returns err, or, if the server does not know a parameter of the URL, an error that does not name it:
// a password that is not percent-encoded may be read as one.
func withoutParameter(err error) error {
	answer := new(pgconn.PgError)
	if errors.As(err, &answer) && (answer.Code == "42704" || answer.Code == "22023") {
		return usagef("the database refuses a parameter of the database URL (SQLSTATE %s): it does not know the name or the "+
			"value; any & in a password must be percent-encoded, as %%26", answer.Code)
	}
	return err
}

// markPermanent marks errors that do not pass by themselves.
func markPermanent(err error) error {
	if err == nil || passes(err) {
		return err
	}
	return backoff.Permanent(err)
}

// passes reports whether another attempt may succeed: the database is not reachable, starting, stopping, short of
// resources, or a standby. A change whose outcome is unknown is not attempted again.
func passes(err error) bool {
	answer := new(pgconn.PgError)
	switch {
	case errors.As(err, new(*failure)), errors.Is(err, lock.ErrUnknownOutcome):
		return false
	case readOnly(err):
		return true
	case errors.As(err, &answer):
		return pgconnect.Passes(answer.Code)
	case errors.As(err, new(*pgconn.ConnectError)), pgconn.SafeToRetry(err):
		return true
	}
	return errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// ready waits until the database answers, checks its schema, and calls use as reached does.
func (d database) ready(ctx context.Context, p *program, use func(url string) error) error {
	return d.reached(ctx, p.log, func(url string) error {
		if err := d.checkSchema(ctx, url, p.log); err != nil {
			return err
		}
		return use(url)
	})
}

// checkSchema returns the error of checkVersion for the schema.
func (d database) checkSchema(ctx context.Context, url string, log *slog.Logger) error {
	version, err := migrations.Version(ctx, url, string(d.Schema))
	if err != nil {
		return err
	}
	return d.checkVersion(version, log)
}

// checkVersion returns an error that says what to do unless this binary may start on the schema. It may on a newer one:
// the migration lets it go on, or makes its statements fail.
func (d database) checkVersion(version uint, log *slog.Logger) error {
	latest := migrations.Latest()
	if version < latest {
		return fmt.Errorf("the schema %s is at version %d and this binary needs version %d; run paddock migrate up%s%s",
			d.Schema, version, latest, schema.Name(d.Schema).Flag(), d.flag())
	}
	if version > latest {
		log.Warn("the schema is newer than this binary", "schema", version, "binary", latest)
	}
	return nil
}
