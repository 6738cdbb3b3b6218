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

// Each lock was granted and released once. The events are 30 days old, 16 to a batch. They are of 100,000 locks that
// were pruned. A grant has an odd revision and its own number as token.
const (
	fillLocks = `insert into paddock.records (name, revision, token, last_end)
	select 'filled:' || lpad(i::text, 9, '0'), 2, i, 2 from generate_series(1, $1::bigint) i`
	fillEvents = `insert into paddock.event_batches (id, at, entries)
	select 1 + i / 16, clock_timestamp() - interval '30 days', array_agg(json_build_array(
		'past:' || i % 100000,
		case when i >= 100000 then 1 + (i - 100000) / 16 else 0 end,
		json_build_array(i % 16, 0, 1 + i / 100000, 1 + i / 100000 % 2, 1, 'bench',
			case when i / 100000 % 2 = 0 then i + 1 else i + 1 - 100000 end, 0, '', 0)) order by i)
	from generate_series(0, $1::bigint - 1) i
	group by 1`
	// The ends of leases, every 16th event of a lock, and its last one.
	fillRefs = `insert into paddock.event_refs (key, id)
	select i, (1 + i / 16) * 4096 + i % 16 from generate_series(0, $1::bigint - 1) i where i / 100000 % 2 = 1
	union all
	select (('x' || substr(encode(sha256(('past:' || i % 100000)::bytea), 'hex'), 1, 16))::bit(64)::bigint >> 1) & 9223372036854775807,
		(1 + i / 16) * 4096 + i % 16
	from generate_series(0, $1::bigint - 1) i
	where (1 + i / 100000) % 16 = 0 or i + 100000 >= $1`
	// The next batch is above those of the events, and its tokens, 256 times its id, are above those of the grants.
	moveBatches = `select setval('paddock.event_batch_ids', 1 + greatest($2::bigint / 16, $1::bigint / 256))`
)

func (s *Prefilled) fill(ctx context.Context, conn *pgx.Conn) error {
	var errs []error
	do := func(sql string, args ...any) {
		_, err := conn.Exec(ctx, sql, args...)
		errs = append(errs, err)
	}
	do(fillLocks, s.Locks)
	do(fillEvents, s.Events)
	do(fillRefs, s.Events)
	do(moveBatches, s.Locks, s.Events)
	do("vacuum analyze paddock.records, paddock.event_batches, paddock.event_refs")
	do("checkpoint")
	return errors.Join(errs...)
}
