package main

import (
	"context"
	"errors"
	"net"

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

	Listen  string `default:"127.0.0.1:8080" variable:"PADDOCK_LISTEN" help:"Address to listen on; beyond loopback only with --no-auth."`
	NoAuth  bool   `help:"Serve whoever can reach the address, under any name: there are no API keys yet. A flag only, so that no inherited variable opens the door."`
	Migrate bool   `variable:"PADDOCK_MIGRATE" help:"Bring the schema up to date first."`
}

// Run serves until ctx ends. What it can find wrong with the command line it
// finds before it touches the database, and it listens only once it can answer.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	address, err := c.address(ctx)
	if err != nil {
		return err
	}
	if err := c.prepare(ctx, p); err != nil {
		return p.unlessStopped(ctx, err)
	}
	listener, err := bind(ctx, address)
	if err != nil {
		return err
	}
	return p.serve(ctx, c.URL, c.settings, listener, !c.NoAuth)
}

func (c *serveCommand) address(ctx context.Context) (string, error) {
	address, err := checkAddress(ctx, c.Listen, c.NoAuth)
	if errors.Is(err, errBeyondLoopback) {
		return "", usagef("refusing to listen on %s: %w, there are no API keys yet, and so whoever does could take, "+
			"release and revoke every lock. Listen on loopback (--listen %s); or, if nobody but those you trust can reach "+
			"the address, say --no-auth", c.Listen, err, usualAddress)
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
// With localNames it answers to no name but localhost.
func (p *program) serve(ctx context.Context, databaseURL string, s settings, listener net.Listener, localNames bool) error {
	locks, err := store.Open(ctx, databaseURL, s.store(p.log))
	if err != nil {
		return p.unlessStopped(ctx, errors.Join(err, listener.Close()))
	}
	defer locks.Close()
	service := server.New(server.Options{
		Locks: locks, Ready: locks.Ready, Drain: locks.Drain, UI: web.New(web.Options{Locks: locks, Log: p.log}),
		Log: p.log, Version: version(), RequestTimeout: s.RequestTimeout, DrainDelay: s.DrainDelay, LocalNames: localNames,
	})
	p.log.Info("listening", "address", listener.Addr().String(), "version", version().Version)
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
