//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// launch starts the server and waits until it accepts connections. If it fails, no process is left.
func (s *Server) launch(ctx context.Context) error {
	if err := s.dataDir.stopOrphan(ctx); err != nil {
		return err
	}
	if err := s.dataDir.makeSocketDir(); err != nil {
		return err
	}
	p, err := start(s.dataDir.serve(s.bin, s.opts.Settings), s.opts.Stderr)
	if err != nil {
		return err
	}
	s.process = p
	s.version, err = ready(ctx, s.URL("postgres"), s.opts.Database, p.exited)
	if err != nil {
		err = fmt.Errorf("%w; the server's log ends:\n%s", err, p.log)
		if p.running() {
			err = errors.Join(err, s.kill())
		}
	}
	return err
}

// ready waits for the first connection, creates the database, and returns the server's version.
func ready(ctx context.Context, url, database string, ended <-chan struct{}) (version string, err error) {
	conn, err := connect(ctx, url, ended)
	if err != nil {
		return "", err
	}
	version, _, _ = strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return version, errors.Join(createDatabase(ctx, conn, database), conn.Close(ctx))
}

// connect retries until the server answers or ends, or ctx ends.
func connect(ctx context.Context, url string, ended <-chan struct{}) (*pgx.Conn, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ended:
			return nil, errors.New("the server ended immediately")
		case <-ctx.Done():
			return nil, fmt.Errorf("the server is not ready: %w", context.Cause(ctx))
		case <-tick.C:
		}
		if !starting(err) {
			return nil, err
		}
	}
}

// starting reports whether err may come from a server that is not ready yet, or has too many connections after a
// crash, rather than one that refuses access.
func starting(err error) bool {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		return pg.Code == "57P03" || pg.Code == "53300" // cannot_connect_now, too_many_connections
	}
	return !errors.Is(err, fs.ErrPermission)
}

// createDatabase creates the database unless it exists or the name is empty.
func createDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	if name == "" {
		return nil
	}
	var exists bool
	const find = "select exists (select from pg_catalog.pg_database where datname = $1)"
	err := conn.QueryRow(ctx, find, name).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
	return err
}
