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
	err = s.ready(ctx)
	if err != nil && p.running() {
		err = errors.Join(err, s.kill())
	}
	return err
}

// ready waits for the first connection and creates the database.
func (s *Server) ready(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.version, _, _ = strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return errors.Join(createDatabase(ctx, conn, s.opts.Database), conn.Close(ctx))
}

// connect retries until the server answers or ends, or ctx ends.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn, nil
		}
		select {
		case <-s.process.exited:
			return nil, fmt.Errorf("the server ended immediately (%v):\n%s", s.process.cmd.ProcessState, s.process.log)
		case <-ctx.Done():
			return nil, fmt.Errorf("the server is not ready: %w; its log ends:\n%s", context.Cause(ctx), s.process.log)
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
