package schema4

import (
	"context"
	"embed"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

//go:embed sql/*.sql
var files embed.FS

// MarkSpace is the space of the advisory locks that tell readers of events that some may be missing.
const MarkSpace int64 = 0x5ADD << 48

// anchorColumns is the number of columns of lock_anchors. The third is the revision, the last but one the place of
// the row.
const anchorColumns = 24

// Statement returns a statement of the release.
func Statement(t testing.TB, name string) string {
	t.Helper()
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A Replica grants locks over one connection. It is not safe for concurrent use.
type Replica struct {
	conn                                       *pgx.Conn
	create, lock, draw, saveAnchors, saveEvent string
}

// NewReplica connects a Replica until the test ends.
func NewReplica(t testing.TB, databaseURL string) *Replica {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := conn.Exec(t.Context(), "set lock_timeout = '250ms'"); err != nil {
		t.Fatal(err)
	}
	return &Replica{
		conn: conn, create: Statement(t, "create_anchors"), lock: Statement(t, "lock_anchors"), draw: Statement(t, "draw"),
		saveAnchors: Statement(t, "save_anchors"), saveEvent: Statement(t, "save_events"),
	}
}

// Grant grants an exclusive lease of the lock, whether or not it is free, and returns it with its event.
func (r *Replica) Grant(ctx context.Context, name string, id lock.LeaseID, ttl time.Duration) (lock.Lease, lock.Event, error) {
	lease := lock.Lease{ID: id, Name: name, Mode: lock.Exclusive, Holder: "schema 4", TTL: ttl}
	var event lock.Event
	err := pgx.BeginTxFunc(ctx, r.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		at, revision, err := r.lockAnchor(ctx, tx, name)
		if err != nil {
			return err
		}
		var tokens, ids []int64
		err = tx.QueryRow(ctx, r.draw, 1, 1, MarkSpace).Scan(append([]any{&lease.AcquiredAt, &tokens, &ids}, make([]any, 10)...)...)
		if err != nil {
			return err
		}
		lease.Token, lease.ExpiresAt = lock.Token(tokens[0]), lease.AcquiredAt.Add(ttl)
		event = lock.Event{
			ID: ids[0], At: lease.AcquiredAt, Name: name, Revision: revision + 1, Kind: lock.Granted, Mode: lock.Exclusive,
			Holder: lease.Holder, Token: lease.Token,
		}
		return r.save(ctx, tx, at, lease, event)
	})
	return lease, event, err
}

// lockAnchor creates and locks the row of the lock, and returns its place and revision.
func (r *Replica) lockAnchor(ctx context.Context, tx pgx.Tx, name string) (at pgtype.TID, revision int64, err error) {
	if _, err = tx.Exec(ctx, r.create, []string{name}); err != nil {
		return at, 0, err
	}
	rows, err := tx.Query(ctx, r.lock, []string{name})
	if err != nil {
		return at, 0, err
	}
	columns := make([]any, anchorColumns)
	columns[2], columns[anchorColumns-2] = &revision, &at
	_, err = pgx.ForEachRow(rows, columns, func() error { return nil })
	return at, revision, err
}

func (r *Replica) save(ctx context.Context, tx pgx.Tx, at pgtype.TID, l lock.Lease, e lock.Event) error {
	none, token := []int64{0}, []int64{int64(l.Token)}
	_, err := tx.Exec(ctx, r.saveAnchors, []pgtype.TID{at}, []int64{e.Revision}, token, []int16{0}, []int32{0}, []int32{0},
		[]time.Time{e.At}, []pgtype.UUID{{Bytes: l.ID, Valid: true}}, []int16{int16(l.Mode)}, []string{l.Holder}, token,
		[]int64{l.TTL.Milliseconds()}, none, none, []time.Time{l.AcquiredAt}, []time.Time{l.ExpiresAt}, []*string{nil}, none, none,
		[]*time.Time{nil})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, r.saveEvent, []int64{e.ID}, []time.Time{e.At}, []string{e.Name}, []int32{0}, []int64{e.Revision},
		[]int16{int16(e.Kind)}, []int16{int16(e.Mode)}, []string{e.Holder}, token, []string{""}, none, none)
	return err
}
