package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	driver "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// migrateTo migrates the schema from one version to another, one migration at a time. The library can stop between
// migrations by itself, but has a data race there.
func migrateTo(ctx context.Context, config *pgx.ConnConfig, from, to uint) (err error) {
	m, err := open(config)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	defer func() {
		sourceErr, databaseErr := m.Close()
		err = errors.Join(err, sourceErr, databaseErr)
	}()
	for at := from; at != to; {
		if ctx.Err() != nil {
			return fmt.Errorf("migrations: stopped at version %d: %w", at, context.Cause(ctx))
		}
		next, step := at+1, 1
		if to < at {
			next, step = at-1, -1
		}
		if err := m.Steps(step); err != nil {
			return stepError(m, at, next, err)
		}
		at = next
	}
	return nil
}

// open returns a golang-migrate instance with its own connections, which its Close closes.
func open(config *pgx.ConnConfig) (*migrate.Migrate, error) {
	source, err := iofs.New(files, ".")
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	target, err := driver.WithInstance(db, &driver.Config{SchemaName: "paddock", MigrationsTable: "schema_migrations"})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return migrate.NewWithInstance("iofs", source, "pgx5", target)
}

// stepError returns the error of the step from at to next. If PostgreSQL refused the migration and rolled it back,
// stepError removes the dirty mark of the schema.
func stepError(m *migrate.Migrate, at, next uint, err error) error {
	var failed database.Error
	if !errors.As(err, &failed) {
		return fmt.Errorf("migrations: from version %d to %d: %w", at, next, err)
	}
	err = failed.OrigErr // without the whole text of the file
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		clean := int(at)
		if at == 0 {
			clean = database.NilVersion
		}
		err = errors.Join(err, m.Force(clean))
	}
	return fmt.Errorf("migrations: from version %d to %d, line %d: %w", at, next, failed.Line, err)
}
