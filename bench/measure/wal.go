package measure

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// WAL contains the accumulated counters of a PostgreSQL server.
type WAL struct {
	Bytes   int64 // written to the WAL
	Fsyncs  int64 // of the WAL
	Deleted int64 // deleted rows in this database
}

// The WAL position is exact. The other counters are from PostgreSQL's statistics, to which its processes
// report once a second.
const (
	counts = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, wal_sync,
	(select tup_deleted from pg_stat_database where datname = current_database()) from pg_stat_wal`
	// For PostgreSQL 18 and later.
	countsOfIO = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
	(select coalesce(sum(fsyncs), 0)::bigint from pg_stat_io where object = 'wal'),
	(select tup_deleted from pg_stat_database where datname = current_database()) from pg_stat_wal`
)

// statement returns the query for the server's version.
func statement(ctx context.Context, conn *pgx.Conn) (string, error) {
	var version int
	err := conn.QueryRow(ctx, "select current_setting('server_version_num')::int").Scan(&version)
	if version >= 180000 {
		return countsOfIO, err
	}
	return counts, err
}
