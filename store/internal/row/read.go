package row

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
)

// A Range selects locks to read, in the order of their names.
type Range struct {
	After  string // names greater than this one
	Limit  int
	Active bool // only locks with leases or waiters
	Queue  bool // with their waiters

	from, to string // not less than the one, and less than the other
}

// Prefixed returns the Range of the locks whose names have the prefix. No name contains a byte of 0x7f or more.
func Prefixed(prefix string) Range { return Range{from: prefix, to: prefix + "\x7f"} }

// Only returns the Range of one lock. No name contains the byte 1, which is less than all that names have.
func Only(name string) Range { return Range{Limit: 1, from: name, to: name + "\x01"} }

// Name returns the name of the lock of a Range that Only has returned.
func (r Range) Name() string { return r.from }

// A Reading is a lock as it was read at Now.
type Reading struct {
	Now     time.Time
	Record  lock.Record // with a Queue only if the Range asks for it
	Waiters int         // the places in the queue, if the Range does not ask for it
	Below   int         // those of the Waiters that wait for locks below
	Err     error       // why the lock cannot be read; nil if it can
}

// Lock returns the public view of the lock.
func (r Reading) Lock() lock.Lock {
	l := r.Record.Lock(r.Now)
	l.Waiters += r.Waiters - r.Below
	l.WaitersBelow += r.Below
	return l
}

// A Querier is a connection, a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Read returns the locks of the range and does not lock their rows. A lock that cannot be read is returned with an Err.
// assumeAlive is how long from now on the replica of each waiter counts as alive, at least.
func (r Range) Read(ctx context.Context, from Querier, in schema.Name, assumeAlive time.Duration) (all []Reading, err error) {
	text := sqlRead.In(in)
	if r.Queue {
		text = sqlReadQueue.In(in)
	}
	rows, err := from.Query(ctx, text, r.After, r.from, r.to, r.Limit, r.Active)
	if err != nil {
		return nil, err
	}
	var now time.Time
	var stored storedRecord
	var p part
	var below int
	targets := slices.Concat([]any{&now}, values(stored.columns(nil)), []any{&below}, values(p.columns(nil)), []any{&p.aliveUntil})
	_, err = pgx.ForEachRow(rows, targets, func() error {
		if n := len(all); n == 0 || all[n-1].Record.Name != stored.name.String {
			record, err := stored.record()
			one := Reading{Now: now.UTC(), Record: record, Err: err}
			if !r.Queue {
				one.Waiters, one.Below = int(stored.parts.Int32), below
			}
			all = append(all, one)
		}
		if !p.slot.Valid {
			return nil
		}
		last := &all[len(all)-1]
		if p.slot.Int32 > 0 && !r.Queue {
			last.Waiters--
		}
		if err := p.addTo(&last.Record, last.Now, assumeAlive); err != nil {
			last.Err = cmp.Or(last.Err, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, addSessions(ctx, from, in, all)
}

// addSessions adds the ends of the sessions to the leases and waiters that have one.
func addSessions(ctx context.Context, from Querier, in schema.Name, all []Reading) error {
	var refs []lock.SessionRef
	for i := range all {
		refs = append(refs, refsOf(&all[i].Record)...)
	}
	sessions, unread, err := ReadSessions(ctx, from, in, refs)
	for i := range all {
		all[i].Err = cmp.Or(all[i].Err, unread.of(&all[i].Record))
		sessions.of(&all[i].Record)
	}
	return err
}

// QueueFence queues the statement that locks the lock's row until the transaction ends, and returns its newest token,
// zero for a lock that was never used.
func QueueFence(b *pgx.Batch, in schema.Name, name string, token *lock.Token) {
	b.Queue(sqlFence.In(in), name).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(token); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
}

// AddSessions adds the ends of the sessions to the leases of the record that have one. If one is over at now, and its
// end is not recorded, it waits until no renewal of the session is being committed: its row stays locked until the
// transaction ends.
func AddSessions(ctx context.Context, from Querier, in schema.Name, r *lock.Record, now time.Time) error {
	refs := refsOf(r)
	sessions, unread, err := ReadSessions(ctx, from, in, refs)
	if err == nil && sessions.Undecided(now) {
		var rows pgx.Rows
		if rows, err = from.Query(ctx, sqlLockSessions.In(in), refs); err == nil {
			sessions, unread, err = scanSessions(rows)
		}
	}
	sessions.of(r)
	return cmp.Or(err, unread.of(r))
}

// QueueSlot queues the reading of the lease in a slot from 1 on. If there is one, it is added to the record;
// AddSessions completes it.
func QueueSlot(b *pgx.Batch, in schema.Name, name string, slot int, r *lock.Record) {
	b.Queue(sqlSlot.In(in), name, slot).Query(func(rows pgx.Rows) error {
		var p part
		_, err := pgx.ForEachRow(rows, values(p.columns(nil)), func() error { return p.addTo(r, time.Time{}, 0) })
		return err
	})
}

// ReadOne returns the only lock of the range, or why it cannot be read. If it was never used, it has only a name.
func (r Range) ReadOne(ctx context.Context, from Querier, in schema.Name, assumeAlive time.Duration) (Reading, error) {
	all, err := r.Read(ctx, from, in, assumeAlive)
	if err != nil || len(all) > 0 {
		one := append(all, Reading{})[0]
		return one, cmp.Or(err, one.Err)
	}
	one := Reading{Record: lock.Record{Name: r.from}}
	rows, err := from.Query(ctx, "select clock_timestamp()")
	if err != nil {
		return one, err
	}
	one.Now, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
	one.Now = one.Now.UTC()
	return one, err
}
