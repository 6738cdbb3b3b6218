package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

type fenceCommand struct {
	Install   fenceInstallCommand   `cmd:"" help:"Install paddock_fence into your database, or update it."`
	Uninstall fenceUninstallCommand `cmd:"" help:"Uninstall it, and drop the stored tokens and operations."`
	Report    fenceReportCommand    `cmd:"" help:"Report that a write was rejected because its token was stale."`
	SQL       fenceSQLCommand       `cmd:"" name:"sql" help:"Print the SQL of install or uninstall, for review or for psql."`
}

func (fenceCommand) Help() string {
	return `A lock alone does not stop a paused process from writing. paddock_fence(resource, token), called first in a
transaction, does: it refuses a token lower than one that it has seen, with SQLSTATE PF001. Install it into the
database with the tables to protect, which need not be Paddock's.

    begin;
    select paddock_fence('accounts', 41);
    update accounts set balance = balance - 10 where id = 42;
    commit;

For several resources: paddock_fence(array['accounts:17', 'accounts:42'], 41).

For work that is to be done once: paddock_fence('accounts', 41, 'booking:1734') returns false if a transaction with this
operation id was committed in the last 30 days, under whatever token. Then skip the work.`
}

type fenceInstallCommand struct {
	fencedDatabase
	quietFlag
}

func (fenceInstallCommand) Help() string {
	return `Installing it again keeps the stored tokens. If it is installed in another schema than the first of the
search_path, say with --fence-schema which of them you mean. Other roles that write need select, insert and update on
the table paddock_fences and, with operation ids, select, insert, update and delete on paddock_operations.

    paddock fence install --database-url postgres://owner@db.example/bank
    paddock fence install --database-url postgres://owner@db.example/bank --fence-schema app`
}

func (c *fenceInstallCommand) Run(ctx context.Context, p *program) error {
	var doing stage
	doing.set("waiting for the database")
	done := p.progress(c.Quiet, doing.line)
	s, err := c.run(ctx, p, paddock.InstallFence, func() { doing.set("installing paddock_fence") })
	done()
	if err != nil {
		return err
	}
	what := "Installed paddock_fence in"
	if s.Installed {
		what = "Updated paddock_fence to this release in"
	}
	return printProse(p.stdout, "%s %s.", what, s)
}

type fenceUninstallCommand struct {
	fencedDatabase

	Yes bool `help:"Confirm that the stored tokens and operations are dropped and no table is protected any more."`
}

func (fenceUninstallCommand) Help() string {
	return `Drops the tables paddock_fences and paddock_operations, the functions, and the triggers of paddock_fence_guard, and nothing else.
Stale writes are no longer refused. If it is not in the first schema of the search_path, say with --fence-schema where.

    paddock fence uninstall --database-url postgres://owner@db.example/bank --yes`
}

func (c *fenceUninstallCommand) Run(ctx context.Context, p *program) error {
	if !c.Yes {
		return usagef("this drops the tables of tokens and operations, the functions, and the triggers that protect tables, so " +
			"stale writes are no longer refused; to confirm, repeat it with --yes")
	}
	s, err := c.run(ctx, p, paddock.UninstallFence, func() {})
	if err != nil {
		return err
	}
	done := fmt.Sprintf("paddock_fence is not installed in %s; nothing was dropped.", s)
	if s.Installed {
		done = fmt.Sprintf("Dropped paddock_fence from %s. It protected %s and stored the tokens of %d resources.",
			s, s.guardedTables(), s.Resources)
	}
	return printProse(p.stdout, "%s", done)
}

// guardedTables returns the protected tables as text.
func (s *fenceSchema) guardedTables() string {
	if len(s.Guarded) == 0 {
		return "no table"
	}
	return strings.Join(s.Guarded, ", ")
}

type fenceReportCommand struct {
	Name  string `arg:"" complete:"lock" help:"The lock's name, such as jobs:nightly."`
	Token int64  `arg:"" help:"The token that was rejected."`
	serviceFlags

	Slot  *int   `placeholder:"N" unset:"the newest lease with the token" help:"The slot of the lease that had the token."`
	Where string `placeholder:"TEXT" unset:"not recorded" help:"What rejected the token, such as a table."`
}

func (fenceReportCommand) Help() string {
	return `Records an event in the history of the lock: who wrote after their lease had ended, how late, and who held the lock at
that time. Call it when paddock_fence has refused a token with SQLSTATE PF001, or your own check has. A replica records one
event a minute for each token.

    paddock fence report jobs:nightly 41 --where 'table accounts'`
}

// Run reports a stale token.
func (c *fenceReportCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	recorded, err := locks.ReportStale(ctx, lock.ReportStale{Name: c.Name, Token: lock.Token(c.Token), Slot: c.Slot, Where: c.Where})
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	done := "Recorded: see paddock history " + c.Name + "."
	if !recorded {
		done = "Not recorded: this token was reported less than a minute ago, or too many others were."
	}
	return printProse(p.stdout, "%s", done)
}

type fenceSQLCommand struct {
	Uninstall bool `help:"Print the SQL of uninstall instead of install."`
}

func (fenceSQLCommand) Help() string {
	return `Install and uninstall run exactly this SQL. It is one transaction, in the first schema of the search_path.

    paddock fence sql | psql -v ON_ERROR_STOP=1 postgres://owner@db.example/bank`
}

func (c *fenceSQLCommand) Run(p *program) error {
	sql := paddock.InstallFence
	if c.Uninstall {
		sql = paddock.UninstallFence
	}
	_, err := io.WriteString(p.stdout, sql)
	return err
}

// A fencedDatabase is the flags of the database with the user's tables.
type fencedDatabase struct {
	URL    string `name:"database-url" placeholder:"URL" variable:"PADDOCK_FENCE_DATABASE_URL" help:"PostgreSQL with the tables to protect: postgres://USER:PASSWORD@HOST:5432/DATABASE. The variables that tell serve where to store the locks do not apply here."`
	Schema string `name:"fence-schema" placeholder:"NAME" unset:"the first of the search_path" help:"Existing schema of paddock_fence: one of your own, not the schema of serve."`
	databaseWait
}

// A fenceSchema is a schema in a user's database, and what was installed there before the SQL ran.
type fenceSchema struct {
	conn *pgx.Conn

	Database  string
	Schema    string
	Installed bool
	Resources int64    // with a stored token
	Guarded   []string // tables
}

func (s *fenceSchema) String() string {
	return fmt.Sprintf("schema %s of database %s", s.Schema, s.Database)
}

// run waits for the database, calls connected, runs the SQL in the schema, and returns the schema as it was before.
func (d fencedDatabase) run(ctx context.Context, p *program, sql string, connected func()) (s *fenceSchema, err error) {
	if d.URL == "" {
		return nil, usagef("the database is missing; set PADDOCK_FENCE_DATABASE_URL, or give --database-url, " +
			"to the URL of the database with the tables to protect: postgres://USER:PASSWORD@HOST:5432/DATABASE")
	}
	db := database{URL: d.URL, databaseWait: d.databaseWait}
	err = db.reached(ctx, p.log, func(string) error {
		conn, err := db.connect(ctx)
		if err != nil {
			return err
		}
		connected()
		s = &fenceSchema{conn: conn}
		if err = s.find(ctx, d.Schema); err == nil {
			err = s.run(ctx, d.Schema != "", sql)
		}
		return errors.Join(s.explain(err), conn.Close(context.WithoutCancel(ctx)))
	})
	return s, err
}

// findSchema returns an empty name if the schema does not exist.
const findSchema = `
select current_database(), coalesce(case when $1 = '' then current_schema()
	else (select nspname from pg_namespace where nspname = $1) end, '')`

const findFence = `
select to_regclass(quote_ident($1) || '.paddock_fences') is not null,
	(select coalesce(array_agg(distinct tgrelid::regclass::text order by tgrelid::regclass::text), '{}')
		from pg_trigger where tgfoid = to_regprocedure(quote_ident($1) || '.paddock_fence_trigger()'))`

// find fills s in.
func (s *fenceSchema) find(ctx context.Context, schema string) error {
	if err := s.conn.QueryRow(ctx, findSchema, schema).Scan(&s.Database, &s.Schema); err != nil {
		return err
	}
	switch {
	case s.Schema == "" && schema != "":
		return fmt.Errorf("database %s has no schema %s; create it, or give another --fence-schema", s.Database, schema)
	case s.Schema == "":
		return fmt.Errorf("no schema of the search_path exists in database %s; create one, or give --fence-schema", s.Database)
	}
	if err := s.conn.QueryRow(ctx, findFence, s.Schema).Scan(&s.Installed, &s.Guarded); err != nil || !s.Installed {
		return err
	}
	count := "select count(*) from " + pgx.Identifier{s.Schema, "paddock_fences"}.Sanitize()
	return s.conn.QueryRow(ctx, count).Scan(&s.Resources)
}

// run runs the SQL, one transaction, in the schema. chosen says that the user has named it; otherwise it is the first of
// the search_path, which stays as it is, and the SQL checks that choice. It sends one message, so that a pooler keeps it
// on one connection and the search_path applies to this transaction only. If the connection breaks, it may have run.
func (s *fenceSchema) run(ctx context.Context, chosen bool, sql string) error {
	if chosen {
		sql = "set local search_path = " + pgx.Identifier{s.Schema}.Sanitize() + ";\n" + sql
	}
	_, err := s.conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil && !errors.As(err, new(*pgconn.PgError)) && s.conn.IsClosed() && !errors.Is(err, context.Canceled) {
		return unreachablef("the connection to the database broke; check what is installed before you retry: %w", err)
	}
	return err
}

// explain adds what to do to an error of the server.
func (s *fenceSchema) explain(err error) error {
	answer := new(pgconn.PgError)
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Code {
	case "42501": // insufficient_privilege
		return &failure{exitNotAllowed, fmt.Errorf("%s: run this as a role that may create objects in %s and that owns "+
			"the protected tables", answer.Message, s)}
	case "2BP01": // dependent_objects_still_exist
		return fmt.Errorf("%s (%s): an object of yours depends on it; drop that first", answer.Message, answer.Detail)
	}
	if answer.Hint != "" {
		return fmt.Errorf("%w: %s", err, answer.Hint)
	}
	return err
}
