package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/paddock-lock/paddock/migrations"
)

type migrateCommand struct {
	Up      migrateUpCommand      `cmd:"" help:"Bring the schema to the version that this binary knows."`
	Down    migrateDownCommand    `cmd:"" help:"Undo migrations, and drop what they had made."`
	Version migrateVersionCommand `cmd:"" help:"Print the schema's version."`
}

type migrateUpCommand struct {
	database
}

// Run migrates up and says from where to where.
func (c *migrateUpCommand) Run(ctx context.Context, p *program) error {
	return p.migrate(ctx, c.database, func() error { return migrations.Up(ctx, c.URL) })
}

type migrateDownCommand struct {
	database

	Steps int  `required:"" placeholder:"N" help:"How many migrations to undo."`
	Yes   bool `help:"Yes, drop the tables and what is in them."`
}

// Run migrates down and says from where to where. Leases in a table that it
// drops are lost without anybody being told.
func (c *migrateDownCommand) Run(ctx context.Context, p *program) error {
	switch {
	case c.Steps < 1:
		return usagef("--steps %d: give 1 or more", c.Steps)
	case !c.Yes:
		return usagef("this drops tables and every lease and event in them; if that is meant, say it again with --yes")
	}
	return p.migrate(ctx, c.database, func() error { return migrations.Down(ctx, c.URL, c.Steps) })
}

// migrate changes the schema and prints what became of it.
func (p *program) migrate(ctx context.Context, db database, change func() error) error {
	if err := db.await(ctx, p.log); err != nil {
		return err
	}
	before, _, err := migrations.Version(ctx, db.URL)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, _, err := migrations.Version(ctx, db.URL)
	if err != nil {
		return err
	}
	if before == after {
		_, err = fmt.Fprintf(p.stdout, "The schema is at version %d already; nothing was changed.\n", after)
	} else {
		_, err = fmt.Fprintf(p.stdout, "The schema was at version %d and is at version %d now.\n", before, after)
	}
	return err
}

type migrateVersionCommand struct {
	database
}

// Run prints the schema's version. It fails if that is not the one to run with.
func (c *migrateVersionCommand) Run(ctx context.Context, p *program) error {
	if err := c.await(ctx, p.log); err != nil {
		return err
	}
	version, _, err := migrations.Version(ctx, c.URL)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "The schema is at version %d; this binary knows version %d.\n", version, migrations.Latest())
	return errors.Join(err, checkSchema(ctx, c.URL, p.log))
}

// checkSchema returns an error that says what to do unless this binary can run
// on the schema. It can on a newer one: a migration never breaks the release
// before it.
func checkSchema(ctx context.Context, url string, log *slog.Logger) error {
	version, dirty, err := migrations.Version(ctx, url)
	switch latest := migrations.Latest(); {
	case err != nil:
		return err
	case dirty:
		return &migrations.DirtyError{Version: version}
	case version < latest:
		return fmt.Errorf("the schema is at version %d and this binary needs version %d: run paddock migrate up, or start with --migrate", version, latest)
	case version > latest:
		log.Warn("the schema is newer than this binary", "schema", version, "known", latest)
	}
	return nil
}
