package row

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// A Row is a lock as it was read or written, and the version of its record.
type Row struct {
	Record    lock.Record
	At        pgtype.TID
	Version   uint32     // the transaction that wrote the record
	LastEvent int64      // the row of paddock.event_batches with its newest event
	Floor     lock.Token // tokens granted next must be greater

	parts int
}

// ErrChanged is returned by Look when a lock was pruned or changed while it was read. Another look may succeed.
var ErrChanged = errors.New("a lock changed while it was read")

// A Look says what to read.
type Look struct {
	Names  []string // in order, without duplicates
	Ended  []Ending // leases: how they ended is read
	Tokens int      // to draw
	// Lock starts a transaction, and locks the rows in the order of the names until it ends.
	Lock bool
	// Pooled says that there is a pooler in transaction mode: the transaction brings its settings along.
	Pooled bool
	// Lenience is for how long from now on the replica of each waiter counts as alive, at least.
	Lenience time.Duration
}

// An Ending selects the event that ended a lease.
type Ending struct {
	Ref  lock.LeaseRef
	Name string // of the lock
}

// A View is what Run has read.
type View struct {
	Epoch  epoch.Epoch // its Now was read after the rows
	Rows   map[string]Row
	Ended  map[lock.LeaseRef]lock.Event
	Tokens []lock.Token
}

// Run reads the names, and creates those that are missing. It is one round trip, and another one if a lock has parts. If
// Lock is set, the caller must end the transaction, also after an error.
func (l Look) Run(ctx context.Context, conn *pgx.Conn) (View, error) {
	v := View{Rows: make(map[string]Row, len(l.Names)), Ended: make(map[lock.LeaseRef]lock.Event, len(l.Ended))}
	b := &pgx.Batch{}
	text := sqlLook
	if l.Lock {
		text = sqlLookLock
		b.Queue(database.Begin)
	}
	if l.Pooled {
		database.QueueSettings(b, database.RowTimeout)
	}
	if !l.Lock {
		database.QueueRelax(b) // a record without a lease may be lost
	}
	b.Queue(text, l.Names).Query(v.scanRows)
	epoch.Queue(b, &v.Epoch)
	if l.Tokens > 0 {
		queueDraw(b, l.Tokens, l.Tokens, func(tokens []lock.Token, _ time.Time) { v.Tokens = tokens })
	}
	v.queueEndings(b, l.Ended)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return v, err
	}
	if len(v.Rows) < len(l.Names) {
		return v, ErrChanged
	}
	for name, r := range v.Rows {
		r.Floor = r.Record.Token
		if r.Floor == 0 {
			r.Floor = v.Epoch.LastToken
		}
		v.Rows[name] = r
	}
	return v, v.readParts(ctx, conn, l.Lenience)
}

// Draw draws n tokens, or at least one if the sequence has no more. It returns none if the connection leads to another
// server than that of e.
func Draw(ctx context.Context, conn *pgx.Conn, e epoch.Epoch, n int) (tokens []lock.Token, err error) {
	b := &pgx.Batch{}
	queueDraw(b, n, 1, func(drawn []lock.Token, started time.Time) {
		if started.Equal(e.Started) {
			tokens = drawn
		}
	})
	return tokens, conn.SendBatch(ctx, b).Close()
}

// queueDraw queues the drawing of n tokens, or as many as the sequence has. It fails if these are fewer than least. The
// tokens are passed to use with the start time of the server.
func queueDraw(b *pgx.Batch, n, least int, use func(tokens []lock.Token, started time.Time)) {
	b.Queue(sqlDraw, n, least, int64(lock.MaxToken)).QueryRow(func(row pgx.Row) error {
		var tokens []lock.Token
		var started time.Time
		err := row.Scan(&started, &tokens)
		use(tokens, started)
		return err
	})
}

// LockedElsewhere returns those of the names whose records other sessions have locked, and those that have no record.
func LockedElsewhere(ctx context.Context, db *database.DB, names []string) (locked, missing []string, err error) {
	if locked, err = readNames(ctx, db, sqlLockedNow, names); err != nil {
		return nil, nil, err
	}
	known, err := readNames(ctx, db, sqlKnown, names)
	have := make(map[string]bool, len(known))
	for _, name := range known {
		have[name] = true
	}
	for _, name := range names {
		if !have[name] {
			missing = append(missing, name)
		}
	}
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
	var own ownColumns
	var lease leaseFields
	targets := append(own.targets(), lease.targets()...)
	var r Row
	targets = append(targets, &r.At, &r.Version)
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		var err error
		if r.Record, err = own.record(&lease); err != nil {
			return err
		}
		r.LastEvent, r.parts = own.lastEvent, own.parts
		v.Rows[own.name] = r
	}
	return rows.Err()
}

// queueEndings queues the reading of the events that ended leases.
func (v *View) queueEndings(b *pgx.Batch, ended []Ending) {
	if len(ended) == 0 {
		return
	}
	keys, names := make([]int64, 0, len(ended)), make([]string, 0, len(ended))
	for _, e := range ended {
		keys, names = append(keys, int64(e.Ref)), append(names, e.Name)
	}
	b.Queue(sqlEndings, keys, names).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var key, id int64
			var at time.Time
			var element []byte
			if err := rows.Scan(&key, &id, &at, &element); err != nil {
				return err
			}
			entry, err := ParseEntry(element, id/EventsPerBatch, at)
			if err != nil {
				return err
			}
			for _, e := range entry.Events {
				if e.ID == id {
					e.Ref = lock.LeaseRef(key)
					v.Ended[e.Ref] = e
				}
			}
		}
		return rows.Err()
	})
}

// readParts completes the locks that have parts.
func (v *View) readParts(ctx context.Context, conn *pgx.Conn, lenience time.Duration) error {
	var names []string
	var versions []pgtype.Uint32
	for name, r := range v.Rows {
		if r.parts > 0 {
			names, versions = append(names, name), append(versions, pgtype.Uint32{Uint32: r.Version, Valid: true})
		}
	}
	if len(names) == 0 {
		return nil
	}
	rows, err := conn.Query(ctx, sqlParts, names, versions)
	if err != nil {
		return err
	}
	alive := time.Time{}
	if lenience > 0 {
		alive = v.Epoch.Now.Add(lenience)
	}
	if err := v.scanParts(rows, alive); err != nil {
		return err
	}
	for _, name := range names {
		if r := v.Rows[name]; parts(&r.Record) != r.parts {
			return ErrChanged
		}
	}
	return nil
}

// scanParts adds leases and waiters to their locks. The replicas of waiters are alive at least until the instant alive.
func (v *View) scanParts(rows pgx.Rows, alive time.Time) error {
	var name string
	var part partFields
	var heartbeat pgtype.Timestamptz
	targets := append(append([]any{&name}, part.targets()...), &heartbeat)
	_, err := pgx.ForEachRow(rows, targets, func() error {
		r := v.Rows[name]
		if part.slot > 0 {
			l, err := part.lease(name)
			r.Record.Leases = append(r.Record.Leases, l)
			v.Rows[name] = r
			return err
		}
		w, err := part.waiter(name)
		extendLife(w, heartbeat, alive)
		r.Record.Queue = append(r.Record.Queue, w)
		v.Rows[name] = r
		return err
	})
	return err
}

// extendLife adds what the row of the waiter's replica says, if there is one, and that the replica is alive at least until
// the instant alive. After an outage that may be more than the row says, or there is no row: a crash of PostgreSQL loses
// the newest heartbeats.
func extendLife(w *lock.Waiter, heartbeat pgtype.Timestamptz, alive time.Time) {
	if w.Replica == 0 {
		return
	}
	if heartbeat.Valid {
		w.AliveUntil = latest(w.AliveUntil, heartbeat.Time.UTC())
	}
	w.AliveUntil = latest(w.AliveUntil, alive)
}

func latest(times ...time.Time) time.Time {
	last := times[0]
	for _, t := range times[1:] {
		if t.After(last) {
			last = t
		}
	}
	return last
}
