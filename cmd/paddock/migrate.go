package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/paddock-lock/paddock/migrations"
)

type migrateCommand struct {
	Up      migrateUpCommand      `cmd:"" help:"Migrate the schema up to the version of this binary."`
	Down    migrateDownCommand    `cmd:"" help:"Undo migrations, and drop the tables that they created."`
	Version migrateVersionCommand `cmd:"" help:"Print the schema's version."`
}

func (migrateCommand) Help() string {
	return `Migrate first, then upgrade the binaries. In between, replicas of the previous release go on, or answer 503
with Retry-After if they cannot use the new schema: CHANGELOG.md says which. A migration that was killed leaves the
tables as they were: repeat the command. Of several commands at the same time one migrates; the others wait, and print
the same.

    paddock migrate version --database-url postgres://paddock@db.example/paddock
    paddock migrate up --database-url postgres://paddock@db.example/paddock
    paddock migrate down --steps 1 --yes --database-url postgres://paddock@db.example/paddock`
}

type migrateUpCommand struct {
	database
	quietFlag
}

func (c *migrateUpCommand) Run(ctx context.Context, p *program) error {
	return p.migrate(ctx, c.database, c.Quiet, func(url string) error { return migrations.Up(ctx, url, string(c.Schema), p.log) })
}

type migrateDownCommand struct {
	database
	quietFlag

	Steps int  `xor:"down" required:"" placeholder:"N" help:"How many migrations to undo. One of --steps and --to is required."`
	To    *int `xor:"down" required:"" placeholder:"VERSION" help:"Instead of --steps: the version of the schema to go back to; 0 drops all tables but schema_migrations, which is empty then."`
	Yes   bool `help:"Confirm that tables and their contents are dropped."`
}

// Run migrates down and prints the versions before and after. Holders of leases in a dropped table are not notified.
func (c *migrateDownCommand) Run(ctx context.Context, p *program) error {
	switch {
	case c.To != nil && *c.To < 0:
		return usagef("--to %d: give 0 or more", *c.To)
	case c.To == nil && c.Steps < 1:
		return usagef("--steps %d: give 1 or more", c.Steps)
	case !c.Yes:
		return usagef("this drops tables with all their leases and events; to confirm, repeat it with --yes")
	}
	return p.migrate(ctx, c.database, c.Quiet, func(url string) error {
		if c.To != nil {
			return migrations.DownTo(ctx, url, string(c.Schema), uint(*c.To), p.log)
		}
		return migrations.Down(ctx, url, string(c.Schema), c.Steps, p.log)
	})
}

// migrate changes the schema and prints the versions before and after.
func (p *program) migrate(ctx context.Context, db database, quiet bool, change func(url string) error) error {
	var before, after uint
	var s stage
	s.set("waiting for the database")
	done := p.progress(quiet, s.line)
	defer done()
	err := db.reached(ctx, p.log, func(url string) (err error) {
		before, err = migrations.Version(ctx, url, string(db.Schema))
		return err
	})
	if err != nil {
		return err
	}
	err = db.reached(ctx, p.log, func(url string) error {
		s.set(fmt.Sprintf("migrating the schema %s from version %d", db.Schema, before))
		if err := change(url); err != nil {
			return err
		}
		after, err = migrations.Version(ctx, url, string(db.Schema))
		return err
	})
	if err != nil {
		return err
	}
	done()
	if before == after {
		return printProse(p.stdout, "The schema %s is already at version %d; nothing was changed.", db.Schema, after)
	}
	return printProse(p.stdout, "The schema %s was at version %d and is now at version %d.", db.Schema, before, after)
}

type migrateVersionCommand struct {
	database
	outputFlags
}

// A migrationJSON is the schema's version as JSON shows it.
type migrationJSON struct {
	Schema  string `json:"schema"`
	Version uint   `json:"version"`
	Needed  uint   `json:"needed_version"`
}

// Run prints the schema's version. It fails if this binary cannot run on it.
func (c *migrateVersionCommand) Run(ctx context.Context, p *program) error {
	var version uint
	var wrong error // with the schema
	err := c.reached(ctx, p.log, func(url string) (err error) {
		if version, err = migrations.Version(ctx, url, string(c.Schema)); err == nil {
			wrong = c.checkVersion(version, p.log)
		}
		return err
	})
	if err != nil {
		return err
	}
	shown := migrationJSON{string(c.Schema), version, migrations.Latest()}
	err = p.print(c.Output, output{wire: shown, names: []string{strconv.FormatUint(uint64(version), 10)}, table: func(t *table) {
		t.text(fmt.Sprintf("The schema %s is at version %d; this binary is for version %d.", c.Schema, version, shown.Needed))
	}})
	return errors.Join(err, wrong)
}
