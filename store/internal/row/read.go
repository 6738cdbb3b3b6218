package row

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// A Range selects locks to read, in the order of their names.
type Range struct {
	After  string // names greater than this one
	From   string // and not less than this one
	To     string // and less than this one; empty: all
	Limit  int
	Active bool // only locks with leases or waiters
	Queue  bool // with their waiters
}

// beyondAll is greater than every name: names have no byte 0x7f, and none that is greater.
const beyondAll = "\x7f"

// Only returns the Range of one lock. No name contains the byte 1, which is less than all that names have.
func Only(name string) Range { return Range{From: name, To: name + "\x01", Limit: 1} }

// A Reading is a lock as it was read at Now.
type Reading struct {
	Now     time.Time
	Record  lock.Record // with a Queue only if the Range asks for it
	Waiters int         // in the queue
}

// Lock returns the public view of the lock.
func (r Reading) Lock() lock.Lock {
	l := r.Record.Lock(r.Now)
	l.Waiters += r.Waiters - len(r.Record.Queue)
	return l
}

// A Querier is a connection, a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Read returns the locks of the range, without locking them. lenience is for how long from now on the replica of each
// waiter counts as alive, at least.
func (r Range) Read(ctx context.Context, from Querier, lenience time.Duration) (all []Reading, err error) {
	text := sqlRead
	if r.Queue {
		text = sqlReadQueue
	}
	rows, err := from.Query(ctx, text, r.After, r.From, cmp.Or(r.To, beyondAll), r.Limit, r.Active)
	if err != nil {
		return nil, err
	}
	var own ownColumns
	var lease leaseFields
	var part partFields
	var now time.Time
	var slot pgtype.Int4
	var alive pgtype.Timestamptz
	targets := append(append([]any{&now}, own.targets()...), lease.targets()...)
	targets = append(append(append(targets, &slot), part.targets()...), &alive)
	_, err = pgx.ForEachRow(rows, targets, func() (err error) {
		if n := len(all); n == 0 || all[n-1].Record.Name != own.name {
			record, err := own.record(&lease)
			waiters := own.parts
			if err != nil {
				return err
			}
			all = append(all, Reading{Now: now.UTC(), Record: record, Waiters: waiters})
		}
		if !slot.Valid {
			return nil
		}
		last := &all[len(all)-1]
		if slot.Int32 == 0 {
			return last.addWaiter(&part, alive, lenience)
		}
		l, err := part.lease(own.name)
		last.Record.Leases = append(last.Record.Leases, l)
		last.Waiters--
		return err
	})
	return all, err
}

func (r *Reading) addWaiter(part *partFields, alive pgtype.Timestamptz, lenience time.Duration) error {
	w, err := part.waiter(r.Record.Name)
	leniently := time.Time{}
	if lenience > 0 {
		leniently = r.Now.Add(lenience)
	}
	extendLife(w, alive, leniently)
	r.Record.Queue = append(r.Record.Queue, w)
	return err
}

// QueueFence queues the statement that locks the lock's row until the transaction ends, and returns its newest token,
// zero for a lock that was never used.
func QueueFence(b *pgx.Batch, name string, token *lock.Token) {
	b.Queue(sqlFence, name).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(token); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
}

// QueueSlot queues the reading of the lease in a slot from 1 on. If there is one, it is added to the record.
func QueueSlot(b *pgx.Batch, name string, slot int, r *lock.Record) {
	b.Queue(sqlSlot, name, slot).Query(func(rows pgx.Rows) error {
		var part partFields
		_, err := pgx.ForEachRow(rows, part.targets(), func() error {
			l, err := part.lease(name)
			r.Leases = append(r.Leases, l)
			return err
		})
		return err
	})
}

// ReadOne returns the only lock of the range. If it was never used, it has only a name.
func (r Range) ReadOne(ctx context.Context, from Querier, lenience time.Duration) (Reading, error) {
	all, err := r.Read(ctx, from, lenience)
	if err != nil || len(all) > 0 {
		return append(all, Reading{})[0], err
	}
	one := Reading{Record: lock.Record{Name: r.From}}
	rows, err := from.Query(ctx, "select clock_timestamp()")
	if err != nil {
		return one, err
	}
	one.Now, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
	one.Now = one.Now.UTC()
	return one, err
}
