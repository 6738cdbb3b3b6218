package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/migrations"
)

type devCommand struct {
	settings

	Listen    string `default:"127.0.0.1:8080" help:"Loopback address to listen on; port 0 is any that is free."`
	Dir       string `xor:"data" placeholder:"DIR" help:"Where to keep the data (under $$XDG_DATA_HOME or ~/.local/share; for root /var/lib/paddock-dev)."`
	Ephemeral bool   `xor:"data" help:"Keep the data in a temporary directory that is removed at the end."`
}

// Run serves until ctx ends, from a PostgreSQL that it starts and stops.
func (c *devCommand) Run(ctx context.Context, p *program) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	dir, err := c.dir(p.env)
	if err != nil {
		return err
	}
	listener, err := c.bind(ctx)
	if err != nil {
		return err
	}
	db, err := pgserver.Start(ctx, pgserver.Options{Dir: dir, Database: "paddock"})
	if err != nil {
		return p.unlessStopped(ctx, errors.Join(err, listener.Close()))
	}
	defer func() { err = errors.Join(err, stopDatabase(ctx, db)) }()
	return c.serve(ctx, p, listener, db)
}

func (c *devCommand) bind(ctx context.Context) (net.Listener, error) {
	address, err := checkAddress(ctx, c.Listen, false)
	if errors.Is(err, errBeyondLoopback) {
		return nil, usagef("refusing to listen on %s: %w, and paddock dev lets everybody in; use loopback, such as %s, or paddock serve",
			c.Listen, err, usualAddress)
	}
	if err != nil {
		return nil, err
	}
	return bind(ctx, address)
}

// serve runs the service on db for as long as there is one.
func (c *devCommand) serve(ctx context.Context, p *program, listener net.Listener, db *pgserver.Server) error {
	ctx, cancel := whileRunning(ctx, db)
	defer cancel()
	return errors.Join(c.begin(ctx, p, listener, db), lostDatabase(ctx))
}

func (c *devCommand) begin(ctx context.Context, p *program, listener net.Listener, db *pgserver.Server) error {
	url := db.URL("paddock")
	err := migrations.Up(ctx, url)
	if err == nil {
		err = c.welcome(p.stdout, listener.Addr(), db)
	}
	if err != nil {
		return p.unlessStopped(ctx, errors.Join(err, listener.Close()))
	}
	return p.serve(ctx, url, c.settings, listener, opening{localNames: true})
}

var errDatabaseEnded = errors.New("PostgreSQL has ended on its own")

// whileRunning returns a context that ends with errDatabaseEnded when db does.
func whileRunning(ctx context.Context, db *pgserver.Server) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-db.Done():
			cancel(errDatabaseEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func lostDatabase(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errDatabaseEnded) {
		return errDatabaseEnded
	}
	return nil
}

// stopDatabase gives PostgreSQL the time for a good end, even though ctx is over.
func stopDatabase(ctx context.Context, db *pgserver.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return db.Stop(ctx)
}

// dir returns where the data is to be, empty for a temporary place. Root's is
// not under /root, which the account that PostgreSQL runs as cannot enter.
func (c *devCommand) dir(env lookup) (string, error) {
	switch {
	case c.Ephemeral:
		return "", nil
	case c.Dir != "":
		return c.Dir, nil
	case os.Geteuid() == 0:
		return "/var/lib/paddock-dev", nil
	}
	if data, ok := env("XDG_DATA_HOME"); ok && filepath.IsAbs(data) {
		return filepath.Join(data, "paddock", "dev"), nil
	}
	home, ok := env("HOME")
	if !ok || home == "" {
		return "", usagef("there is no HOME to keep the data in; give --dir or --ephemeral")
	}
	return filepath.Join(home, ".local", "share", "paddock", "dev"), nil
}
