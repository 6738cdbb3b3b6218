package measure

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// WAL is what a PostgreSQL server has done so far.
type WAL struct {
	Bytes   int64 // written to its log
	Images  int64 // pages in it that were written in full, because they were the first after a checkpoint
	Fsyncs  int64 // of it
	Deleted int64 // rows, in this database
}

// The log's position is exact; the counts are those of PostgreSQL's statistics, to which its
// processes report once a second.
const (
	counts = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, wal_fpi, wal_sync,
	(select tup_deleted from pg_stat_database where datname = current_database()) from pg_stat_wal`
	// From version 18 on.
	countsOfIO = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, wal_fpi,
	(select coalesce(sum(fsyncs), 0)::bigint from pg_stat_io where object = 'wal'),
	(select tup_deleted from pg_stat_database where datname = current_database()) from pg_stat_wal`
)

// statement is the one that the server knows.
func statement(ctx context.Context, conn *pgx.Conn) (string, error) {
	var version int
	err := conn.QueryRow(ctx, "select current_setting('server_version_num')::int").Scan(&version)
	if version >= 180000 {
		return countsOfIO, err
	}
	return counts, err
}
