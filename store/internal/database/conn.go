package database

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// WithConn runs f on a connection of its own, for an operator's command. Confirmed works on it as on those of a DB.
func WithConn(ctx context.Context, databaseURL string, f func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return err
	}
	config.OnNotice, config.DefaultQueryExecMode = noteUnconfirmed, pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(context.WithoutCancel(ctx)))
}
