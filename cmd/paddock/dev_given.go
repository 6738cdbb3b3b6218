package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/migrations"
)

// A givenDatabase is a database that paddock dev uses and does not start or stop.
type givenDatabase struct {
	url     string
	version string
}

// openGiven waits for a database. It refuses one whose schema is of another release: dev migrates only what it begins,
// because replicas of that release may use the schema.
func openGiven(ctx context.Context, p *program, d database) (given givenDatabase, err error) {
	var version uint
	err = d.reached(ctx, p.log, func(url string) error {
		config, err := d.config()
		if err != nil {
			return err
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		given = givenDatabase{url: url, version: conn.PgConn().ParameterStatus("server_version")}
		if err := conn.Close(ctx); err != nil {
			return err
		}
		version, err = migrations.Version(ctx, url, string(d.Schema))
		return err
	})
	if err == nil && version != 0 && version != migrations.Latest() {
		err = usagef("the schema %s in the database has version %d, this paddock needs %d, and paddock dev does not "+
			"migrate a database that may be in use: run paddock migrate up%s, use the release of that version, or name an "+
			"empty database",
			d.Schema, version, migrations.Latest(), schema.Name(d.Schema).Flag())
	}
	return given, err
}

// URL returns the given URL: there is one database.
func (g givenDatabase) URL(string) string { return g.url }

func (g givenDatabase) Version() string { return g.version }

func (g givenDatabase) Data() string { return "in the database of --database-url" }

func (g givenDatabase) Done() <-chan struct{} { return nil }

func (g givenDatabase) Stop(context.Context) error { return nil }
