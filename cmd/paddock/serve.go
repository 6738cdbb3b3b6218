package main

import (
	"cmp"
	"context"
	"errors"
	"net"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/web"
)

// usualAddress is where the service is unless told otherwise.
const usualAddress = "127.0.0.1:8080"

type serveCommand struct {
	database
	settings
	accessFlags

	Listen  string `default:"127.0.0.1:8080" variable:"PADDOCK_LISTEN" help:"Address to listen on; beyond loopback only with --auth-file and TLS, or with --no-auth."`
	Migrate bool   `variable:"PADDOCK_MIGRATE" help:"Bring the schema up to date first."`
}

// Run serves until ctx ends. What it can find wrong with the command line it
// finds before it touches the database, and it listens only once it can answer.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	if err := cmp.Or(c.settings.check(), c.accessFlags.check()); err != nil {
		return err
	}
	address, err := c.address(ctx)
	if err != nil {
		return err
	}
	open, err := c.open(p.log)
	if err != nil {
		return err
	}
	defer open.close()
	warnOfFiles(p.log, openFileLimit(), c.MaxConnections)
	if err := c.prepare(ctx, p); err != nil {
		return p.unlessStopped(ctx, err)
	}
	listener, err := bind(ctx, address)
	if err != nil {
		return err
	}
	listener = open.certificates.listen(capped(listener, c.MaxConnections, p.log))
	return p.serve(ctx, c.URL, c.settings, listener, open)
}

func (c *serveCommand) address(ctx context.Context) (string, error) {
	address, err := checkAddress(ctx, c.Listen, c.mayLeave())
	if errors.Is(err, errBeyondLoopback) {
		return "", usagef("refusing to listen on %s: %w, %s", c.Listen, err, c.whyNot())
	}
	return address, err
}

// prepare waits for the database and sees to its schema. One that a newer
// release has made stays as it is: this replica was merely restarted late.
func (c *serveCommand) prepare(ctx context.Context, p *program) error {
	if err := c.await(ctx, p.log); err != nil {
		return err
	}
	if c.Migrate {
		err := migrations.Up(ctx, c.URL)
		if newer := (*migrations.NewerError)(nil); err != nil && !errors.As(err, &newer) {
			return err
		}
	}
	return checkSchema(ctx, c.URL, p.log)
}

// serve runs the service on listener until ctx ends: it then takes no more
// requests, finishes those it has, and leaves the database. It closes listener.
func (p *program) serve(ctx context.Context, databaseURL string, s settings, listener net.Listener, open opening) error {
	defer roomy(p.env)()
	stored, err := store.Open(ctx, databaseURL, s.store(p.log))
	if err != nil {
		return p.unlessStopped(ctx, errors.Join(err, listener.Close()))
	}
	defer stored.Close()
	var locks lock.Service = stored
	if open.keys != nil {
		locks = access.Guard(stored, open.limits())
	}
	service := server.New(server.Options{
		Locks: locks, Ready: stored.Ready, Drain: stored.Drain, UI: web.New(web.Options{Locks: locks, Log: p.log}),
		Log: p.log, Version: version(), RequestTimeout: s.RequestTimeout, DrainDelay: s.DrainDelay,
		Keys: open.keys, SecureCookies: open.PlainHTTP, LocalNames: open.localNames,
		MaxStreams: open.MaxStreams, StreamsPerKey: open.StreamsPerKey,
	})
	p.log.Info("listening", "address", listener.Addr().String(), "version", version().Version,
		"keys", open.keys != nil, "tls", open.certificates != nil, "mutual_tls", open.TLSClientCA != "")
	err = service.Serve(ctx, listener)
	p.log.Info("stopped")
	return err
}

// unlessStopped returns err, which kept the service from starting, unless ctx
// has ended: to be told to stop meanwhile is no failure. It is logged then.
func (p *program) unlessStopped(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	p.log.Info("stopped before the service was ready", "during", err)
	return nil
}
