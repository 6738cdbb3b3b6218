package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A database is the flags that say where the locks are kept.
type database struct {
	URL  string        `name:"database-url" placeholder:"URL" variable:"PADDOCK_DATABASE_URL,DATABASE_URL" help:"PostgreSQL to keep the locks in: postgres://USER:PASSWORD@HOST:5432/DATABASE. Better in the environment than where ps shows it."`
	Wait time.Duration `name:"wait-database" default:"30s" variable:"PADDOCK_WAIT_DATABASE" help:"How long to wait at the start for a database that cannot be reached yet."`
}

// await returns once the database has answered. What waiting cannot mend, such
// as a wrong password, fails at once. No error and no log shows the URL.
func (d database) await(ctx context.Context, log *slog.Logger) error {
	config, err := d.config()
	if err != nil {
		return err
	}
	steps := backoff.NewExponentialBackOff()
	steps.InitialInterval, steps.MaxInterval = 100*time.Millisecond, 2*time.Second
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, greet(ctx, config) },
		backoff.WithBackOff(steps),
		backoff.WithMaxElapsedTime(max(d.Wait, time.Nanosecond)), // zero would be for ever
		backoff.WithNotify(func(err error, next time.Duration) {
			log.Warn("the database cannot be reached yet", "error", err, "again_in", next)
		}))
	if err != nil && ctx.Err() == nil {
		return unreachablef("the database cannot be used: %w", err)
	}
	return err
}

// config parses the URL. A mistake is explained by the URL without its password.
func (d database) config() (*pgx.ConnConfig, error) {
	if d.URL == "" {
		return nil, usagef("which database? Set PADDOCK_DATABASE_URL or DATABASE_URL, or give --database-url, " +
			"to postgres://USER:PASSWORD@HOST:5432/DATABASE (paddock dev needs none)")
	}
	config, err := pgxpool.ParseConfig(d.URL)
	if err == nil {
		config.ConnConfig.ConnectTimeout = min(max(config.ConnConfig.ConnectTimeout, time.Second), 5*time.Second)
		return config.ConnConfig, nil
	}
	const malformed = "the database's URL is malformed; it looks like postgres://USER:PASSWORD@HOST:5432/DATABASE, " +
		"with special characters of the password percent-encoded"
	u, err := url.Parse(d.URL)
	if err != nil || u.User == nil {
		return nil, usagef(malformed)
	}
	u.User, u.RawQuery = url.User(u.User.Username()), withoutPasswords(u.Query()).Encode()
	if _, err := pgxpool.ParseConfig(u.String()); err != nil {
		return nil, usagef("the database's URL cannot be used: %w", err)
	}
	return nil, usagef(malformed)
}

func withoutPasswords(query url.Values) url.Values {
	query.Del("password")
	query.Del("sslpassword")
	return query
}

// greet connects once. The error is permanent unless the database may just not
// be up yet.
func greet(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return lasting(err)
	}
	return conn.Close(ctx)
}

// lasting marks what the server itself says as permanent, except that it is
// starting, stopping, or short of something.
func lasting(err error) error {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return err
	}
	switch said.Code[:2] {
	case "57", "53": // operator intervention, insufficient resources
		return err
	}
	return backoff.Permanent(err)
}
