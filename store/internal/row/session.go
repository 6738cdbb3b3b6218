package row

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// ofSession is the column expires_at of a session's lease.
var ofSession = epoch.OfSession

// A storedSession is a row of paddock.sessions.
type storedSession struct {
	ref                          pgtype.Int8
	id                           pgtype.UUID
	holder                       pgtype.Text
	ttl, left, grace             pgtype.Int8
	metadata                     pgtype.Text
	openedAt, expiresAt, endedAt pgtype.Timestamptz
	ended                        pgtype.Int2
	reason                       pgtype.Text
	endedBy, endedKey, endedIn   pgtype.Text // the lock.Caller
	revokedLeases, cells         pgtype.Int8
	skipGrace                    pgtype.Bool
}

// columns returns the columns. The first is the key.
func (s *storedSession) columns() []column {
	return []column{
		{"ref", "bigint", &s.ref}, {"id", "uuid", &s.id}, {"holder", "text", &s.holder}, {"ttl_ms", "bigint", &s.ttl}, {"left_ms", "bigint", &s.left},
		{"grace_ms", "bigint", &s.grace}, {"metadata", "text", &s.metadata}, {"opened_at", "timestamptz", &s.openedAt},
		{"expires_at", "timestamptz", &s.expiresAt}, {"ended", "smallint", &s.ended}, {"ended_at", "timestamptz", &s.endedAt},
		{"reason", "text", &s.reason}, {"ended_by", "text", &s.endedBy}, {"ended_by_id", "text", &s.endedKey}, {"ended_in", "text", &s.endedIn},
		{"revoked_leases", "bigint", &s.revokedLeases},
		{"skip_grace", "boolean", &s.skipGrace}, {"cells", "bigint", &s.cells},
	}
}

func storeSession(s lock.Session) storedSession {
	return storedSession{
		ref: bigint(int64(s.ID.Ref())), id: pgtype.UUID{Bytes: s.ID, Valid: true}, holder: text(s.Holder),
		ttl: bigint(s.TTL.Milliseconds()), left: bigint(roundedUp(s.Left)), grace: bigint(s.Grace.Milliseconds()),
		metadata: pgtype.Text{String: string(s.Metadata), Valid: s.Metadata != nil},
		openedAt: timestamp(s.OpenedAt), expiresAt: timestamp(s.ExpiresAt), ended: smallint(int(s.Ended)),
		endedAt: pgtype.Timestamptz{Time: s.EndedAt, Valid: !s.EndedAt.IsZero()}, reason: text(s.Reason),
		endedBy: text(s.EndedBy.Name), endedKey: text(s.EndedBy.KeyID), endedIn: text(s.EndedBy.Trace), revokedLeases: bigint(s.RevokedLeases),
		skipGrace: pgtype.Bool{Bool: s.SkipGrace, Valid: true}, cells: bigint(int64(s.Cells)),
	}
}

func (s *storedSession) session() lock.Session {
	all := lock.Session{
		ID: s.id.Bytes, Holder: s.holder.String, TTL: fromMillis(s.ttl.Int64), Left: fromMillis(s.left.Int64), Grace: fromMillis(s.grace.Int64),
		OpenedAt: s.openedAt.Time.UTC(), ExpiresAt: s.expiresAt.Time.UTC(), Ended: lock.Kind(s.ended.Int16), Reason: s.reason.String,
		EndedBy:       lock.Caller{Name: s.endedBy.String, KeyID: s.endedKey.String, Trace: s.endedIn.String},
		RevokedLeases: s.revokedLeases.Int64, SkipGrace: s.skipGrace.Bool,
		Cells: lock.CellSet(s.cells.Int64),
	}
	if s.metadata.Valid {
		all.Metadata = json.RawMessage(s.metadata.String)
	}
	if s.endedAt.Valid {
		all.EndedAt = s.endedAt.Time.UTC()
	}
	return all
}

// Sessions are sessions as they were read.
type Sessions map[lock.SessionRef]lock.Session

// Undecided reports whether nothing may be decided at now about what one of them keeps alive.
func (s Sessions) Undecided(now time.Time) bool {
	for _, one := range s {
		if one.Undecided(now) {
			return true
		}
	}
	return false
}

// of returns those of the leases and waiters of the record, and adds their ends to them. The record must have just
// been read: its leases and waiters are changed.
func (s Sessions) of(r *lock.Record) Sessions {
	var own Sessions
	add := func(l *lock.Lease) {
		if l.Session == 0 {
			return
		}
		one, found := s[l.Session]
		if !found {
			*l = l.In(nil)
			return
		}
		if *l = l.In(&one); own == nil {
			own = make(Sessions)
		}
		own[l.Session] = one
	}
	for i := range r.Leases {
		add(&r.Leases[i])
	}
	for _, w := range r.Queue {
		add(&w.Lease)
	}
	return own
}

// refsOf returns the sessions of the leases and waiters of the record.
func refsOf(r *lock.Record) (refs []lock.SessionRef) {
	for i := range r.Leases {
		if l := &r.Leases[i]; l.Session != 0 {
			refs = append(refs, l.Session)
		}
	}
	for _, w := range r.Queue {
		if w.Lease.Session != 0 {
			refs = append(refs, w.Lease.Session)
		}
	}
	return refs
}

// Unread are why sessions cannot be read.
type Unread map[lock.SessionRef]error

// of returns why a session of the record cannot be read, nil if all can.
func (u Unread) of(r *lock.Record) error {
	if len(u) > 0 {
		for _, ref := range refsOf(r) {
			if u[ref] != nil {
				return u[ref]
			}
		}
	}
	return nil
}

// ReadSessions returns the sessions, as far as there are any, and why others cannot be read.
func ReadSessions(ctx context.Context, from Querier, in schema.Name, refs []lock.SessionRef) (Sessions, Unread, error) {
	if len(refs) == 0 {
		return nil, nil, nil
	}
	rows, err := from.Query(ctx, sqlSessions.In(in), refs)
	if err != nil {
		return nil, nil, err
	}
	return scanSessions(rows)
}

func scanSessions(rows pgx.Rows) (Sessions, Unread, error) {
	all, unread := make(Sessions), make(Unread)
	var s storedSession
	_, err := pgx.ForEachRow(rows, values(s.columns()), func() error {
		ref := lock.SessionRef(s.ref.Int64)
		if bad := s.check(); bad != nil {
			unread[ref] = malformedSession(ref, bad)
		} else {
			all[ref] = s.session()
		}
		return nil
	})
	return all, unread, err
}

// ExpireSessions records the end of those of the sessions that are over. It does nothing on another server than that
// of e, or in another epoch.
func ExpireSessions(ctx context.Context, conn *pgx.Conn, in schema.Name, e epoch.Epoch, refs []lock.SessionRef) error {
	_, err := conn.Exec(ctx, sqlExpireSessions.In(in), refs, e.Started, e.Number)
	return err
}

// QueueLockedSession queues the locking of the session's row until the transaction ends, and its reading into s. ends
// says that the session may be ended: then it waits for grants in it, which come before or not at all.
func QueueLockedSession(b *pgx.Batch, in schema.Name, ref lock.SessionRef, ends bool, s **lock.Session) {
	text := sqlLockSessions.In(in)
	if ends {
		text = sqlEndSessions.In(in)
	}
	b.Queue(text, []lock.SessionRef{ref}).Query(func(rows pgx.Rows) error {
		all, unread, err := scanSessions(rows)
		if one, found := all[ref]; found {
			*s = &one
		}
		return cmp.Or(err, unread[ref])
	})
}

// SessionsLockedElsewhere returns those of the sessions, and those of the names with leases or waiters of sessions,
// whose sessions' rows other transactions have locked.
func SessionsLockedElsewhere(ctx context.Context, db *database.DB, refs []lock.SessionRef, all []string) (locked []lock.SessionRef, names []string, err error) {
	rows, err := db.Rest.Query(ctx, sqlLockedSessions.In(db.Schema), all, refs)
	if err != nil {
		return nil, nil, err
	}
	var l LeftLock
	_, err = pgx.ForEachRow(rows, []any{&l.Ref, &l.Name}, func() error {
		locked = append(locked, l.Ref)
		if l.Name != "" {
			names = append(names, l.Name)
		}
		return nil
	})
	return locked, names, err
}

// QueueSessionsOf queues the locking of the rows of the sessions that have a lease of the lock.
func QueueSessionsOf(b *pgx.Batch, in schema.Name, name string) { b.Queue(sqlSessionsOf.In(in), name) }

// QueueOpenSession queues the writing of a new session. lost is set if there is one already; then nothing is written.
func QueueOpenSession(b *pgx.Batch, in schema.Name, s lock.Session, lost *bool) {
	stored := storeSession(s)
	b.Queue(sqlOpenSession.In(in), values(stored.columns())...).Query(func(rows pgx.Rows) error {
		*lost = !rows.Next()
		rows.Close()
		return rows.Err()
	})
}

// QueueSaveSession queues the writing of a session whose row is locked.
func QueueSaveSession(b *pgx.Batch, in schema.Name, s lock.Session) {
	stored := storeSession(s)
	b.Queue(sqlSaveSession.In(in), values(stored.columns())...)
}

// A SessionCount is how many leases and places a session has.
type SessionCount struct{ Leases, Places int }

// SessionCounts are the counts of some sessions.
type SessionCounts map[lock.SessionRef]SessionCount

// Queue queues the counting of what the sessions have.
func (c SessionCounts) Queue(b *pgx.Batch, in schema.Name, refs ...lock.SessionRef) {
	b.Queue(sqlCountOfSessions.In(in), refs, ofSession).Query(func(rows pgx.Rows) error {
		var ref lock.SessionRef
		var n SessionCount
		_, err := pgx.ForEachRow(rows, []any{&ref, &n.Leases, &n.Places}, func() error {
			c[ref] = n
			return nil
		})
		return err
	})
}

// LocksOfSession returns leases and places of the session, in the order of lock.SessionLock.Compare.
func LocksOfSession(ctx context.Context, from Querier, in schema.Name, ref lock.SessionRef, limit int) ([]lock.SessionLock, error) {
	rows, err := from.Query(ctx, sqlLocksOfSession.In(in), ref, limit, ofSession)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[lock.SessionLock])
}

// A LeftLock is a lock of which a session has something.
type LeftLock struct {
	Ref  lock.SessionRef
	Name string
}

// LeftOfSessions returns locks of which the sessions have leases or waiters.
func LeftOfSessions(ctx context.Context, from Querier, in schema.Name, refs []lock.SessionRef, limit int) ([]LeftLock, error) {
	rows, err := from.Query(ctx, sqlLeftOfSessions.In(in), refs, limit, ofSession)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[LeftLock])
}
