package cells

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/eventlog"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

var (
	sqlLockSessions      = ofNames("lock_sessions")
	sqlEndSessions       = database.Statement(files, "end_sessions")
	sqlUseSessions       = database.Statement(files, "use_sessions")
	sqlReadSessions      = database.Statement(files, "read_sessions")
	sqlLockTableSessions = database.Statement(files, "lock_table_sessions")
	sqlMergeSessions     = database.Statement(files, "merge_sessions")
	sqlColumns           = database.Statement(files, "columns")
	sqlReadBatches       = database.Statement(files, "read_batches")
	sqlWriteBatches      = database.Statement(files, "write_batches")
	sqlReadRefs          = database.Statement(files, "read_refs")
	sqlWriteRefs         = database.Statement(files, "write_refs")
)

// ofNames returns a statement about the sessions of names.
func ofNames(name string) *schema.Statement {
	return schema.NewStatement(sync.OnceValue(func() string {
		return strings.Replace(database.Text(files, name), "{{.OfNames}}\n", database.Text(files, "sessions_of_names"), 1)
	}))
}

// tables have the rows of a group, each found by the name in a column. Each is copied as it is.
var tables = []struct{ name, column string }{
	{"records", "name"}, {"parts", "name"}, {"trees", "root"}, {"freezes", "scope"}, {"rules", "scope"},
	{"fenced", "key"}, {"fenced_operations", "key"},
}

// chunk is how many batches of events, or references to them, are copied at a time.
const chunk = 2000

// lockedSessions records at the source which of the groups' sessions are over, while no heartbeat is being committed, and
// that they are used in the target. It returns them as they are then, and their refs.
func (m *move) lockedSessions(ctx context.Context) (rows string, refs []int64, err error) {
	defer database.Rollback(m.source) // nothing is left of it after a commit
	b := &pgx.Batch{}
	b.Queue(database.Begin)
	database.QueueSettings(b, database.RowTimeout)
	b.Queue(sqlLockSessions.In(m.in), m.names.First, m.names.Beyond).Query(func(r pgx.Rows) (err error) {
		refs, err = pgx.CollectRows(r, pgx.RowTo[int64])
		return err
	})
	if err := m.source.SendBatch(ctx, b).Close(); err != nil {
		return "", nil, err
	}
	b = &pgx.Batch{}
	b.Queue(sqlEndSessions.In(m.in), refs, int16(lock.Expired))
	b.Queue(sqlUseSessions.In(m.in), refs, m.bits)
	b.Queue(sqlReadSessions.In(m.in), refs).QueryRow(func(r pgx.Row) error { return r.Scan(&rows) })
	b.Queue("commit")
	return rows, refs, database.CommitBatch(context.WithoutCancel(ctx), m.source, b)
}

// holdSessions reads the sessions once more, and lets no heartbeat at the source change them before the source's transaction
// ends: it could give one a longer TTL, which the target would not know of.
func (m *move) holdSessions(ctx context.Context, c *cargo) error {
	b := &pgx.Batch{}
	b.Queue(database.Begin)
	database.QueueSettings(b, database.RowTimeout)
	b.Queue(sqlLockSessions.In(m.in), m.names.First, m.names.Beyond)
	b.Queue(sqlReadSessions.In(m.in), c.refs).QueryRow(func(r pgx.Row) error { return r.Scan(&c.sessions) })
	err := m.source.SendBatch(ctx, b).Close()
	if err != nil {
		database.Rollback(m.source)
	}
	return err
}

// queueSessions queues the statements that write the sessions into the target. The clock is read while none of them can
// be renewed.
func (m *move) queueSessions(b *pgx.Batch, rows string, refs []int64) {
	if len(refs) == 0 {
		return
	}
	b.Queue(sqlLockTableSessions.In(m.in))
	b.Queue(sqlEndSessions.In(m.in), refs, int16(lock.Expired))
	b.Queue(sqlMergeSessions.In(m.in), rows)
	epoch.QueueRebaseSessions(b, m.in, refs)
}

// copyRows copies the rows of the groups, as they are.
func (m *move) copyRows(ctx context.Context) error {
	if err := m.begin(ctx, m.source, "repeatable read read only"); err != nil {
		return err
	}
	defer database.Rollback(m.source)
	for _, t := range tables {
		if err := m.copyTable(ctx, t.name, t.column); err != nil {
			return fmt.Errorf("copying the table %s: %w", t.name, err)
		}
	}
	return nil
}

// copyTable copies the rows of one table.
func (m *move) copyTable(ctx context.Context, table, column string) error {
	var columns, others string
	name := m.in.String() + "." + table
	if err := m.source.QueryRow(ctx, sqlColumns.In(m.in), name).Scan(&columns); err != nil {
		return err
	}
	if err := m.target.QueryRow(ctx, sqlColumns.In(m.in), name).Scan(&others); err != nil {
		return err
	}
	if columns != others {
		return errors.New("it has other columns in the other cell; run paddock migrate up for all cells")
	}
	var conditions []string
	for i := range m.names.First {
		conditions = append(conditions, fmt.Sprintf("%s >= %s and %s < %s", column, quoted(m.names.First[i]), column, quoted(m.names.Beyond[i])))
	}
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		sql := fmt.Sprintf("copy (select %s from %s where %s) to stdout (format binary)", columns, name, strings.Join(conditions, " or "))
		_, err := m.source.PgConn().CopyTo(ctx, writer, sql)
		written <- errors.Join(err, writer.CloseWithError(err))
	}()
	_, err := m.target.PgConn().CopyFrom(ctx, reader, fmt.Sprintf("copy %s (%s) from stdin (format binary)", name, columns))
	return errors.Join(err, reader.CloseWithError(err), <-written)
}

// quoted returns the text as a literal. No name contains a backslash or a byte of 0x7f or more.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// copyHistory copies the events of the groups that there are by now, so that few are left to be copied while the groups
// are in neither cell. The target's own events continue above them. newest is the last batch that it has copied.
func (m *move) copyHistory(ctx context.Context, newest *int64) error {
	b := &pgx.Batch{}
	eventlog.QueueComplete(b, m.in, newest)
	if err := m.source.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	err := m.change(ctx, m.target, func(*policy.Snapshot) error { return nil },
		func(b *pgx.Batch) { epoch.QueueRaise(b, m.in, *newest) })
	if err == nil {
		err = m.copyEvents(ctx, 0, *newest)
	}
	if err = m.explain(m.target, err); err != nil {
		return fmt.Errorf("copying the history: %w", err)
	}
	return m.done(copied)
}

// copyEvents copies the events of the groups in the batches after one and up to another, and the references to them.
func (m *move) copyEvents(ctx context.Context, after, upTo int64) error {
	for at := after; at < upTo; {
		rows, err := m.source.Query(ctx, sqlReadBatches.In(m.in), at, upTo, chunk, m.groups)
		if err != nil {
			return err
		}
		var ids []int64
		var instants []time.Time
		var entries []string
		var id int64
		var instant time.Time
		var entry string
		tag, err := pgx.ForEachRow(rows, []any{&id, &instant, &entry}, func() error {
			if at = id; entry != "[]" {
				ids, instants, entries = append(ids, id), append(instants, instant), append(entries, entry)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := m.exec(ctx, m.target, m.turn, sqlWriteBatches.In(m.in), ids, instants, entries); err != nil {
			return err
		}
		if tag.RowsAffected() < chunk {
			break
		}
	}
	return m.copyRefs(ctx, after, upTo)
}

// copyRefs copies the references to events in the batches.
func (m *move) copyRefs(ctx context.Context, after, upTo int64) error {
	rows, err := m.source.Query(ctx, sqlReadRefs.In(m.in), after, upTo, m.groups)
	if err != nil {
		return err
	}
	var keys, ids []int64
	write := func() error {
		err := m.exec(ctx, m.target, m.turn, sqlWriteRefs.In(m.in), keys, ids)
		keys, ids = nil, nil
		return err
	}
	var key, id int64
	_, err = pgx.ForEachRow(rows, []any{&key, &id}, func() error {
		if keys, ids = append(keys, key), append(ids, id); len(keys) == chunk {
			return write()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return write()
}
