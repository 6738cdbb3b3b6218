package paddock

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Prefilled is Paddock over HTTP on a prefilled database: free locks, and old events that are pruned
// during the run.
type Prefilled struct {
	HTTP
	Locks  int
	Events int
	Raw    bool // do not analyze the tables after filling them
}

// FilledName returns the name of the i-th prefilled lock, starting at 1.
func FilledName(i int) string { return fmt.Sprintf("filled:%09d", i) }

// Filled returns the number of prefilled locks.
func (s *Prefilled) Filled() int { return s.Locks }

// Start implements system.System.
func (s *Prefilled) Start(ctx context.Context, dir string) error {
	s.prefill = s.fill
	return s.start(ctx, dir)
}

// Each lock was granted and released once. The events are 30 days old.
const (
	fillLocks = `insert into paddock.locks (name, revision, last_token, last_end)
	select 'filled:' || lpad(i::text, 9, '0'), 2, i, 2 from generate_series(1, $1::bigint) i`
	fillEvents = `insert into paddock.events (id, at, name, revision, kind, token, holder, mode, lease_ref)
	select i, clock_timestamp() - interval '30 days', 'past:' || i % 100000, i, 1 + i % 2, i, 'bench', 1, case when i % 2 = 1 then i end
	from generate_series(1, $1::bigint) i`
	moveTokens = `select setval('paddock.fencing_tokens', greatest($1::bigint, 1))`
	moveEvents = `select setval('paddock.event_ids', greatest($1::bigint, 1))`
)

func (s *Prefilled) fill(ctx context.Context, conn *pgx.Conn) error {
	var errs []error
	do := func(sql string, args ...any) {
		_, err := conn.Exec(ctx, sql, args...)
		errs = append(errs, err)
	}
	do(fillLocks, s.Locks)
	do(moveTokens, s.Locks)
	do(fillEvents, s.Events)
	do(moveEvents, s.Events)
	if !s.Raw {
		do("vacuum analyze paddock.locks")
		do("vacuum analyze paddock.events")
	}
	do("checkpoint")
	return errors.Join(errs...)
}
