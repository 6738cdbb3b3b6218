package policy

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

var (
	sqlFreeze     = change("freeze")
	sqlThaw       = change("thaw")
	sqlLeasesLeft = database.Statement(files, "leases_left")
	sqlWaitedFor  = database.Statement(files, "waited_for")
)

// Freeze freezes the scope of the request.
func (c *Catalog) Freeze(ctx context.Context, r lock.FreezeRequest) (lock.Freeze, error) {
	f := lock.Freeze{Scope: r.Scope, Reason: r.Reason, By: r.By}
	var length *time.Duration
	if r.For > 0 {
		length = &r.For
	}
	err := c.apply(ctx, plan{
		of:    string(r.Scope),
		check: func(s *Snapshot) (bool, error) { return false, s.CheckFreeze(r.Scope, s.At) },
		sql:   sqlFreeze, args: []any{string(r.Scope), r.Reason, r.By, length},
		into: []any{&f.FrozenAt, (*zeronull.Timestamptz)(&f.Until)},
	})
	f.FrozenAt, f.Until = f.FrozenAt.UTC(), f.Until.UTC()
	return f, err
}

// Thaw ends the freeze of the scope, and returns it; found is false if there was none.
func (c *Catalog) Thaw(ctx context.Context, s lock.Scope) (f lock.Freeze, found bool, err error) {
	err = c.apply(ctx, plan{
		of: string(s),
		check: func(now *Snapshot) (bool, error) {
			f, found = now.Freezes[s]
			found = found && !f.IsOver(now.At)
			return !found, nil
		},
		sql: sqlThaw, args: []any{string(s)}, into: []any{new(bool)},
	})
	return f, found, err
}

// Read returns the policy as it is in the database.
func (c *Catalog) Read(ctx context.Context) (*Snapshot, error) { return c.read(ctx, c.db.Rest) }

// LeasesOf returns how many leases are left of the locks of the scope, and of those of the other names; and names of locks
// with leases that are over, as far as is visible. These count, until that is recorded: a renewal that was decided in time
// may not be visible yet.
func LeasesOf(ctx context.Context, from interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, in schema.Name, s lock.Scope, others []string) (n int, over []string, at time.Time, err error) {
	first, end := rangeOf(s)
	if others == nil {
		others = []string{}
	}
	err = from.QueryRow(ctx, sqlLeasesLeft.In(in), first, end, others).Scan(&n, &over, &at)
	return n, over, at.UTC(), err
}

// WaitedFor returns locks of the scope that have waiters, at most limit.
func WaitedFor(ctx context.Context, from interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, in schema.Name, s lock.Scope, limit int) ([]string, error) {
	first, end := rangeOf(s)
	rows, err := from.Query(ctx, sqlWaitedFor.In(in), first, end, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// rangeOf returns the names of the scope: from the first one to an end that is not one of them. No name contains the byte
// 1, which is less than all that names have, or one of 0x7f or more.
func rangeOf(s lock.Scope) (first, end string) {
	if s.IsPrefix() {
		return string(s), string(s) + "\x7f"
	}
	return string(s), string(s) + "\x01"
}

// FreezesAt returns the freezes that are in force at the instant, in the order of their scopes.
func (s *Snapshot) FreezesAt(now time.Time) []lock.Freeze {
	var all []lock.Freeze
	for _, f := range s.Freezes {
		if !f.IsOver(now) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b lock.Freeze) int { return strings.Compare(string(a.Scope), string(b.Scope)) })
	return all
}
