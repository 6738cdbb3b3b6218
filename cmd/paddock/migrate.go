package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/store"
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
    paddock migrate down --steps 1 --yes --database-url postgres://paddock@db.example/paddock

With several databases, migrate up takes all of them, and registers them as the cells of one deployment:

    paddock migrate up --cell main=postgres://paddock@db1.example/paddock --cell spare=postgres://paddock@db2.example/paddock`
}

type migrateUpCommand struct {
	database
	quietFlag
}

func (c *migrateUpCommand) Run(ctx context.Context, p *program) error {
	cells, err := c.cells()
	if err != nil {
		return err
	}
	for _, d := range cells {
		err := p.migrate(ctx, d, c.Quiet, func(url string) error { return migrations.Up(ctx, url, string(d.Schema), p.log) })
		if err != nil {
			return d.inCell(err)
		}
	}
	if len(c.Cell) == 0 {
		return nil
	}
	return c.register(ctx, p, cells)
}

// register registers the databases as the cells of one deployment.
func (c *migrateUpCommand) register(ctx context.Context, p *program, cells []cellDatabase) error {
	all, err := cellDatabases(cells)
	if err != nil {
		return err
	}
	if err := store.RegisterCells(ctx, string(c.Schema), all); err != nil {
		return err
	}
	return printProse(p.stdout, "Registered as cells: %s.", strings.Join(namesOfCells(cells), ", "))
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
	d, err := c.single("paddock migrate down")
	if err != nil {
		return err
	}
	return p.migrate(ctx, d, c.Quiet, func(url string) error {
		if c.To != nil {
			return migrations.DownTo(ctx, url, string(c.Schema), uint(*c.To), p.log)
		}
		return migrations.Down(ctx, url, string(c.Schema), c.Steps, p.log)
	})
}

// migrate changes the schema and prints the versions before and after.
func (p *program) migrate(ctx context.Context, db cellDatabase, quiet bool, change func(url string) error) error {
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
		return printProse(p.stdout, "The schema %s%s is already at version %d; nothing was changed.", db.Schema, db.of(), after)
	}
	return printProse(p.stdout, "The schema %s%s was at version %d and is now at version %d.", db.Schema, db.of(), before, after)
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
	d, err := c.single("paddock migrate version")
	if err != nil {
		return err
	}
	err = d.reached(ctx, p.log, func(url string) (err error) {
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
