package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A fencedDatabase is the flags that say where the user's tables are.
type fencedDatabase struct {
	URL    string `name:"database-url" placeholder:"URL" variable:"PADDOCK_FENCE_DATABASE_URL" help:"The PostgreSQL that holds the tables to guard: postgres://USER:PASSWORD@HOST:5432/DATABASE. It is yours, so the variables that tell serve where to keep the locks do not count here."`
	Schema string `placeholder:"NAME" help:"Where to put it (the first schema of the search_path)."`
}

// A site is a schema in a user's database, and what is there of the fence.
type site struct {
	conn *pgx.Conn

	Database  string
	Schema    string
	Installed bool
	Resources int64    // that have seen a token
	Guarded   []string // tables
}

func (s *site) String() string {
	return fmt.Sprintf("schema %s of database %s", s.Schema, s.Database)
}

// within calls f with the site, over a connection of its own.
func (d fencedDatabase) within(ctx context.Context, f func(*site) error) error {
	if d.URL == "" {
		return usagef("which database? Set PADDOCK_FENCE_DATABASE_URL, or give --database-url, " +
			"to that of the tables to guard: postgres://USER:PASSWORD@HOST:5432/DATABASE")
	}
	config, err := database{URL: d.URL}.config()
	if err != nil {
		return err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooler in between may know no prepared statements
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return unreachablef("the database cannot be used: %w", err)
	}
	s := &site{conn: conn}
	err = s.find(ctx, d.Schema)
	if err == nil {
		err = f(s)
	}
	return errors.Join(s.explain(err), conn.Close(context.WithoutCancel(ctx)))
}

// findSchema gives no schema if there is none.
const findSchema = `
select current_database(), coalesce(case when $1 = '' then current_schema() else (select nspname from pg_namespace where nspname = $1) end, '')`

const findFence = `
select to_regclass(quote_ident($1) || '.paddock_fences') is not null,
	(select coalesce(array_agg(distinct tgrelid::regclass::text order by tgrelid::regclass::text), '{}')
		from pg_trigger where tgfoid = to_regprocedure(quote_ident($1) || '.paddock_fence_trigger()'))`

// find fills the site in.
func (s *site) find(ctx context.Context, schema string) error {
	if err := s.conn.QueryRow(ctx, findSchema, schema).Scan(&s.Database, &s.Schema); err != nil {
		return err
	}
	switch {
	case s.Schema == "" && schema != "":
		return fmt.Errorf("there is no schema %s in database %s: create it, or give another --schema", schema, s.Database)
	case s.Schema == "":
		return fmt.Errorf("no schema of the search_path exists in database %s: create it, or give --schema", s.Database)
	}
	if err := s.conn.QueryRow(ctx, findFence, s.Schema).Scan(&s.Installed, &s.Guarded); err != nil || !s.Installed {
		return err
	}
	return s.conn.QueryRow(ctx, "select count(*) from "+pgx.Identifier{s.Schema, "paddock_fences"}.Sanitize()).Scan(&s.Resources)
}

// run runs the SQL, a transaction, in the schema. All goes in one message, so that
// a pooler in between keeps it together and the search_path does not outlive it.
func (s *site) run(ctx context.Context, sql string) error {
	_, err := s.conn.PgConn().Exec(ctx, "set local search_path = "+pgx.Identifier{s.Schema}.Sanitize()+";\n"+sql).ReadAll()
	return err
}

// explain turns what the server says into what to do about it.
func (s *site) explain(err error) error {
	said := new(pgconn.PgError)
	switch {
	case errors.As(err, &said):
	case err != nil && s.conn.IsClosed() && !errors.Is(err, context.Canceled):
		return unreachablef("the connection to the database broke, look again what is there: %w", err)
	default:
		return err
	}
	switch said.Code {
	case "42501": // insufficient_privilege
		return &failure{exitNotAllowed, fmt.Errorf("%s: run this as a role that may create in %s, and that owns the tables which are guarded", said.Message, s)}
	case "2BP01": // dependent_objects_still_exist
		return fmt.Errorf("%s (%s): something of yours rests on it; drop that first", said.Message, said.Detail)
	}
	if said.Hint != "" {
		return fmt.Errorf("%w: %s", err, said.Hint)
	}
	return err
}
