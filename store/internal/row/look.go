package row

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// A Row is a lock as it was read or written, with what identifies that version of its record. It is shared and never
// changed.
type Row struct {
	Record    lock.Record
	TID       pgtype.TID // where the record is
	Xmin      uint32     // the transaction that wrote the record
	LastEvent int64      // the row of paddock.event_batches with its newest event
	Sessions  Sessions   // of its leases and waiters, which have their ends. They were read after the record
	// Err is why nothing can be decided on the lock: a row that cannot be read, or ErrChanged. Other locks can be.
	Err error

	parts int
}

// ErrChanged is the Err of a lock that was pruned, created or changed while it was read. Another look may succeed.
var ErrChanged = errors.New("a lock changed while it was read")

// A Look says what to read.
type Look struct {
	Names []string // in order, without duplicates
	// Create are those of the names that are created if they are missing, unless the Trees have changed.
	Create []string
	Trees  epoch.PolicyVersion // zero: whatever it is
	Ended  []Ending            // leases: how they ended is read
	// Sessions are read, too, besides those of the leases and waiters.
	Sessions []lock.SessionRef
	// Lock starts a transaction, and locks the rows in the order of the names until it ends.
	Lock   bool
	Schema schema.Name
	// Pooled says that there is a pooler in transaction mode: the transaction brings its settings along.
	Pooled bool
	// AssumeAlive is for how long from now on the replica of each waiter counts as alive, at least.
	AssumeAlive time.Duration
}

// An Ending selects the event that ended a lease.
type Ending struct {
	Ref  lock.LeaseRef
	Name string // of the lock
}

// A View is what Run has read.
type View struct {
	Epoch epoch.Epoch // its Now was read after the rows
	Rows  map[string]*Row
	Ended map[lock.LeaseRef]lock.Event
	// Sessions are those of the Look and of the Rows, as far as there are any.
	Sessions Sessions
	Unread   Unread // those of them that cannot be read

	schema schema.Name
}

// Run reads the names. A lock that is missing, and not created, has a Row with no place in the table, which no Swap can
// write. It is one round trip, another one if a lock has parts, and another one for sessions. If Lock is set, the
// caller must end the transaction, also after an error.
func (l Look) Run(ctx context.Context, conn *pgx.Conn) (View, error) {
	v := View{schema: l.Schema, Rows: make(map[string]*Row, len(l.Names)), Ended: make(map[lock.LeaseRef]lock.Event, len(l.Ended))}
	b := &pgx.Batch{}
	text := sqlLook.In(l.Schema)
	if l.Lock {
		text = sqlLookLock.In(l.Schema)
		b.Queue(database.Begin)
	}
	if l.Pooled {
		database.QueueSettings(b, database.RowTimeout)
	}
	if !l.Lock {
		database.QueueRelax(b) // a record without a lease may be lost
	}
	b.Queue(text, l.Names, l.Create, l.Trees.Epoch, l.Trees.Changes).Query(v.scanRows)
	epoch.Queue(b, l.Schema, &v.Epoch)
	v.queueEndings(b, l.Ended)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return v, err
	}
	v.addMissing(l)
	v.checkTokens()
	if err := v.readParts(ctx, conn, l.AssumeAlive); err != nil {
		return v, err
	}
	return v, v.readSessions(ctx, conn, l.Sessions)
}

// addMissing adds the locks that are missing. Those that were to be created have changed: another call creates them.
func (v *View) addMissing(l Look) {
	if len(v.Rows) == len(l.Names) {
		return
	}
	for _, name := range l.Create {
		if v.Rows[name] == nil {
			v.Rows[name] = &Row{Record: lock.Record{Name: name}, Err: ErrChanged}
		}
	}
	for _, name := range l.Names {
		if v.Rows[name] == nil {
			v.Rows[name] = &Row{Record: lock.Record{Name: name}}
		}
	}
}

// checkTokens finds locks whose token no commit has granted: the next grant would have a smaller one. The epoch was
// read after the locks.
func (v *View) checkTokens() {
	next := lock.Token(v.Epoch.LastBatch+1) * TokensPerBatch
	for name, r := range v.Rows {
		if r.Err == nil && r.Record.Token >= next {
			r.Err = malformedRecord(name, fmt.Errorf("token is %d, and all granted tokens are less than %d; "+
				"if the sequence event_batch_ids is behind, begin an epoch above this token", r.Record.Token, next))
		}
	}
}

// Unreadable returns the Err of a lock that no further look is likely to find unchanged: its rows contradict each
// other.
func (r *Row) Unreadable() error {
	if errors.Is(r.Err, ErrChanged) {
		return malformedRecord(r.Record.Name, fmt.Errorf("parts is %d, and the table parts has %d rows of the lock", r.parts, parts(&r.Record)))
	}
	return r.Err
}

// Exists reports whether the record is in the table.
func (r *Row) Exists() bool { return r.TID.Valid }

// readSessions completes the locks that have leases or waiters of sessions. It reads the sessions after the locks, so
// that no renewal that came before a decision about such a lock is missed.
func (v *View) readSessions(ctx context.Context, conn *pgx.Conn, refs []lock.SessionRef) (err error) {
	for _, r := range v.Rows {
		refs = append(refs, refsOf(&r.Record)...)
	}
	if v.Sessions, v.Unread, err = ReadSessions(ctx, conn, v.schema, refs); err != nil || len(refs) == 0 {
		return err
	}
	for _, r := range v.Rows {
		if r.Err == nil {
			r.Err = v.Unread.of(&r.Record)
		}
		r.Sessions = v.Sessions.of(&r.Record)
	}
	return nil
}

// ExpireSessions records the end of the sessions that are over, before anything is decided about what they keep alive,
// and reads them again. The Epoch must have been checked.
func (v *View) ExpireSessions(ctx context.Context, conn *pgx.Conn) error {
	var over []lock.SessionRef
	for ref, s := range v.Sessions {
		if s.Undecided(v.Epoch.Now) {
			over = append(over, ref)
		}
	}
	if len(over) == 0 {
		return nil
	}
	if err := ExpireSessions(ctx, conn, v.schema, v.Epoch, over); err != nil {
		return err
	}
	return v.readSessions(ctx, conn, slices.AppendSeq(slices.Collect(maps.Keys(v.Sessions)), maps.Keys(v.Unread)))
}

// LockedElsewhere returns those of the names whose records other sessions have locked, and those that have no record.
func LockedElsewhere(ctx context.Context, db *database.DB, names []string) (locked, missing []string, err error) {
	if locked, err = readNames(ctx, db, sqlLockedNow.In(db.Schema), names); err != nil {
		return nil, nil, err
	}
	existing, err := readNames(ctx, db, sqlExisting.In(db.Schema), names)
	slices.Sort(existing)
	missing = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, found := slices.BinarySearch(existing, name)
		return found
	})
	return locked, missing, err
}

func readNames(ctx context.Context, db *database.DB, sql string, names []string) ([]string, error) {
	rows, err := db.Rest.Query(ctx, sql, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (v *View) scanRows(rows pgx.Rows) error {
	var r Row
	var stored storedRecord
	_, err := pgx.ForEachRow(rows, append(values(stored.columns(nil)), &r.LastEvent, &r.TID, &r.Xmin), func() (err error) {
		read := r
		read.Record, read.Err = stored.record()
		read.parts = int(stored.parts.Int32)
		v.Rows[read.Record.Name] = &read
		return nil
	})
	return err
}

// queueEndings queues the reading of the events that ended leases.
func (v *View) queueEndings(b *pgx.Batch, ended []Ending) {
	if len(ended) == 0 {
		return
	}
	keys, names := make([]int64, len(ended)), make([]string, len(ended))
	of := make(map[lock.LeaseRef]string, len(ended))
	for i, e := range ended {
		keys[i], names[i] = int64(e.Ref), e.Name
		of[e.Ref] = e.Name
	}
	b.Queue(sqlEndings.In(v.schema), keys, names).Query(func(rows pgx.Rows) error {
		var ref lock.LeaseRef
		var id int64
		var at time.Time
		var element []byte
		_, err := pgx.ForEachRow(rows, []any{&ref, &id, &at, &element}, func() error {
			entry, err := ParseEntry(element, id/EventsPerBatch, at)
			if r := v.Rows[of[ref]]; err != nil && r != nil {
				r.Err = err
			}
			for _, e := range entry.Events {
				if e.ID == id {
					e.Ref = ref
					v.Ended[ref] = e
				}
			}
			return nil
		})
		return err
	})
}

// readParts completes the locks that have parts.
func (v *View) readParts(ctx context.Context, conn *pgx.Conn, assumeAlive time.Duration) error {
	var names []string
	var xmins []pgtype.Uint32
	for name, r := range v.Rows {
		if r.parts > 0 && r.Err == nil {
			names, xmins = append(names, name), append(xmins, pgtype.Uint32{Uint32: r.Xmin, Valid: true})
		}
	}
	if len(names) == 0 {
		return nil
	}
	rows, err := conn.Query(ctx, sqlParts.In(v.schema), names, xmins)
	if err != nil {
		return err
	}
	var p part
	_, err = pgx.ForEachRow(rows, append(values(p.columns(nil)), &p.aliveUntil), func() error {
		r := v.Rows[p.name.String]
		if err := p.addTo(&r.Record, v.Epoch.Now, assumeAlive); err != nil {
			r.Err = err
		}
		return nil
	})
	for _, name := range names {
		if r := v.Rows[name]; r.Err == nil && parts(&r.Record) != r.parts {
			r.Err = ErrChanged
		}
	}
	return err
}
