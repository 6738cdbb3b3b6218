package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/migrations"
)

// A database is the flags of the database that stores the locks.
type database struct {
	URL  string        `name:"database-url" placeholder:"URL" variable:"PADDOCK_DATABASE_URL,DATABASE_URL" help:"PostgreSQL that stores the locks: postgres://USER:PASSWORD@HOST:5432/DATABASE. Prefer the variable: other users of the machine can see arguments."`
	Wait time.Duration `name:"wait-database" default:"30s" variable:"PADDOCK_WAIT_DATABASE" help:"How long to wait at the start for a database that is not reachable yet."`
}

// await waits until the database answers. Permanent errors, such as a wrong password, fail at once. No error and no
// log record contains the URL.
func (d database) await(ctx context.Context, log *slog.Logger) error {
	config, err := d.config()
	if err != nil {
		return err
	}
	return waitFor(ctx, log, d.Wait, func() error { return ping(ctx, config) })
}

// reportEvery is the least time between two records of a wait that goes on.
const reportEvery = 5 * time.Second

// waitFor calls ping until it succeeds, for that time at most. It logs the first failure, then one every reportEvery,
// and that the wait ended well. Otherwise the error says so.
func waitFor(ctx context.Context, log *slog.Logger, limit time.Duration, ping func() error) error {
	steps := backoff.NewExponentialBackOff()
	steps.InitialInterval, steps.MaxInterval = 100*time.Millisecond, time.Second
	start, next := time.Now(), time.Time{}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, ping() },
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
	case err != nil && ctx.Err() == nil:
		return unreachablef("cannot connect to the database%s: %w", after(waited, !next.IsZero()), lineError{err})
	}
	return err
}

// after says how long a wait took, if there was one.
func after(waited time.Duration, retried bool) string {
	if !retried {
		return ""
	}
	return " after " + short(waited)
}

// connectTimeout is the timeout of an attempt to connect to one host, where the URL gives none.
const connectTimeout = 5 * time.Second

// config parses the URL. Its errors do not contain the password.
func (d database) config() (*pgx.ConnConfig, error) {
	if d.URL == "" {
		return nil, usagef("the database is missing; set PADDOCK_DATABASE_URL or DATABASE_URL, or give --database-url, " +
			"as postgres://USER:PASSWORD@HOST:5432/DATABASE (paddock dev needs none)")
	}
	config, err := pgxpool.ParseConfig(d.URL)
	if err == nil {
		config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
		return config.ConnConfig, nil
	}
	const malformed = "the database URL is malformed; give postgres://USER:PASSWORD@HOST:5432/DATABASE, " +
		"with special characters of the password percent-encoded"
	u, err := url.Parse(d.URL)
	if err != nil || u.User == nil {
		return nil, usagef(malformed)
	}
	u.User, u.RawQuery = url.User(u.User.Username()), withoutPasswords(u.Query()).Encode()
	if _, err := pgxpool.ParseConfig(u.String()); err != nil {
		return nil, usagef("the database URL is invalid: %w", err)
	}
	return nil, usagef(malformed)
}

func withoutPasswords(query url.Values) url.Values {
	query.Del("password")
	query.Del("sslpassword")
	return query
}

// ping connects once. Its error is permanent unless the database may just not be up yet.
func ping(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return markPermanent(err)
	}
	return conn.Close(ctx)
}

// markPermanent marks errors of the server as permanent, unless it is starting, stopping, or short of resources.
func markPermanent(err error) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Code[:2] {
	case "57", "53": // operator intervention, insufficient resources
		return err
	}
	return backoff.Permanent(err)
}

// ready waits until the database answers, and checks its schema.
func (d database) ready(ctx context.Context, p *program) error {
	if err := d.await(ctx, p.log); err != nil {
		return err
	}
	return checkSchema(ctx, d.URL, p.log)
}

// checkSchema returns an error that says what to do unless this binary may start on the schema. It may on a newer one:
// the migration lets it go on, or the database refuses its statements.
func checkSchema(ctx context.Context, url string, log *slog.Logger) error {
	version, err := migrations.Version(ctx, url)
	switch latest := migrations.Latest(); {
	case err != nil:
		return err
	case version < latest:
		return fmt.Errorf("the schema is at version %d and this binary needs version %d; run paddock migrate up, or "+
			"start with --migrate", version, latest)
	case version > latest:
		log.Warn("the schema is newer than this binary", "schema", version, "binary", latest)
	}
	return nil
}
