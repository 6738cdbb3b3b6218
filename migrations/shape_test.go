package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// shapeSQL describes each object of a schema on a line, except that of its version.
const shapeSQL = `
with mine as (
    select c.oid, c.relname, c.relkind, c.reloptions
    from pg_class c
    where c.relnamespace = to_regnamespace($1) and c.relname not like 'schema_migrations%'
)
select format('%s %s %s', relkind, relname, reloptions) from mine
union all
select format('column %s.%s %s not null %s default %s collation %s', relname, attname,
        format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), collname)
    from mine join pg_attribute on attrelid = mine.oid and attnum > 0 and not attisdropped
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    left join pg_collation on pg_collation.oid = attcollation
    where relkind in ('r', 'p', 'v', 'm', 'c')
union all
select pg_get_indexdef(oid) from mine where relkind in ('i', 'I')
union all
select format('constraint %s %s %s', relname, conname, pg_get_constraintdef(pg_constraint.oid))
    from mine join pg_constraint on conrelid = mine.oid
union all
select format('sequence %s start %s increment %s min %s max %s cache %s cycle %s', relname,
        seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle)
    from mine join pg_sequence on seqrelid = mine.oid
union all
select pg_get_triggerdef(pg_trigger.oid) from mine join pg_trigger on tgrelid = mine.oid where not tgisinternal
union all
select pg_get_viewdef(oid) from mine where relkind in ('v', 'm')
union all
select pg_get_functiondef(oid) from pg_proc where pronamespace = to_regnamespace($1) and prokind in ('f', 'p')
union all
select format('type %s %s %s', typname, typtype, format_type(typbasetype, typtypmod))
    from pg_type where typnamespace = to_regnamespace($1) and typtype in ('e', 'd', 'r')
order by 1`

func shape(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return shapeOf(t, conn, "paddock")
}

func shapeOf(t *testing.T, conn *pgx.Conn, schema string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), shapeSQL, schema)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
