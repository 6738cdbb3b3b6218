package migrations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// mark records the version of the schema in the transaction of the migration.
const mark = `
delete from paddock.schema_migrations;
insert into paddock.schema_migrations (version) select %[1]d where %[1]d > 0;
commit`

// createTable creates the table of the version, unless there is one.
const createTable = `
create table if not exists paddock.schema_migrations (version bigint not null primary key);
comment on table paddock.schema_migrations is 'The version of the tables: the number of the last migration.'`

// migrateTo migrates the schema from one version to another, one migration at a time. If ctx ends it stops between two
// of them.
func (r release) migrateTo(ctx context.Context, conn *pgx.Conn, from, to uint) error {
	for at := from; at != to; {
		if ctx.Err() != nil {
			return fmt.Errorf("migrations: stopped at version %d: %w", at, context.Cause(ctx))
		}
		next, file := at+1, fmt.Sprintf("%04d_*.up.sql", at+1)
		if to < at {
			next, file = at-1, fmt.Sprintf("%04d_*.down.sql", at)
		}
		if err := r.step(context.WithoutCancel(ctx), conn, file, next); err != nil {
			return fmt.Errorf("migrations: from version %d to %d, %w", at, next, err)
		}
		at = next
	}
	return nil
}

// step runs the file that matches the pattern, and records the version, in one transaction: both are done, or neither.
func (r release) step(ctx context.Context, conn *pgx.Conn, pattern string, version uint) error {
	paths, err := fs.Glob(r.files, pattern)
	if err == nil && len(paths) != 1 {
		err = fmt.Errorf("the files are %q", paths)
	}
	if err != nil {
		return err
	}
	text, err := fs.ReadFile(r.files, paths[0])
	if err != nil {
		return err
	}
	const before = "begin isolation level read committed;\n"
	sent := before + r.in.In(string(text)+fmt.Sprintf(mark, version))
	_, err = conn.PgConn().Exec(ctx, sent).ReadAll()
	if err == nil {
		return nil
	}
	place := paths[0]
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Position > 0 {
		before := []rune(sent)
		place += fmt.Sprintf(", line %d", strings.Count(string(before[:min(int(refused.Position), len(before))]), "\n"))
	}
	return fmt.Errorf("%s: %w", place, err)
}
