package cells

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

var (
	sqlPlace       = database.Statement(files, "place")
	sqlClear       = database.Statement(files, "clear")
	sqlSplitSets   = database.Statement(files, "split_sets")
	sqlEnded       = ofNames("ended_sessions")
	sqlEndLikewise = database.Statement(files, "end_likewise")
	sqlNoOtherEnd  = ofNames("no_other_end")
	sqlNewestBatch = database.Statement(files, "newest_batch")
	errArrived     = errors.New("the groups have arrived")
	errNotMoving   = errors.New("the groups do not move any more: another command has finished or given up this move")
	errPaused      = errors.New("grants are paused, because a fail-over may have lost leases; move the groups when the pause is over, see paddock epoch")
)

// abortTimeout is how long it is tried to give up a move.
const abortTimeout = 10 * time.Second

// A step of a move, in order. The switch is the end of carrying.
type step string

const (
	copied   step = "copied"   // most of the history is in the target
	left     step = "left"     // the source decides about the groups no more
	carried  step = "carried"  // the target decides about them
	finished step = "finished" // the source has nothing of them
)

// A move is one of some groups from the source to the target.
type move struct {
	in     schema.Name
	from   Cell
	to     Cell
	source *pgx.Conn
	target *pgx.Conn
	bits   int64 // of both cells, in the sessions' cells

	groups     []string
	names      epoch.Names
	generation int64
	pinned     *bool         // as the target is to say; nil: as it is
	turn       time.Duration // see deployment
	after      func(step) error
}

// namesOf returns the names of the groups' locks, scopes and keys.
func namesOf(groups []string) (n epoch.Names) {
	for _, g := range groups {
		n.First, n.Beyond = append(n.First, g, g+":"), append(n.Beyond, g+"\x01", g+";")
	}
	return n
}

// run moves the groups. If it fails before the switch, the groups stay with the source, if both databases can be reached.
func (m *move) run(ctx context.Context) error {
	var newest int64
	leaves := false // or may
	err := m.comes(ctx)
	if err == nil {
		err = m.copyHistory(ctx, &newest)
	}
	if err == nil {
		err = m.leave(ctx)
		leaves = err == nil || errors.Is(err, lock.ErrUnknownOutcome)
	}
	if err == nil {
		err = m.done(left)
	}
	if err == nil {
		err = m.carry(ctx, newest)
	}
	switch {
	case err == nil, errors.Is(err, errArrived):
		return m.finish(ctx)
	case !leaves, errors.Is(err, errKilled), errors.Is(err, errNotMoving):
		return err
	}
	gaveUp := m.abort(context.WithoutCancel(ctx))
	if errors.Is(gaveUp, errArrived) {
		return m.finish(ctx)
	}
	if gaveUp != nil && !errors.Is(gaveUp, errNotMoving) {
		return fmt.Errorf("%w; and the move cannot be given up at present (%w): run the same command again, which finishes it. "+
			"Until then calls about %s wait", err, gaveUp, strings.Join(m.groups, ", "))
	}
	return err
}

// errKilled stands for the end of the process, in tests.
var errKilled = errors.New("killed")

// done tells that a step is done.
func (m *move) done(s step) error {
	if m.after == nil {
		return nil
	}
	return m.after(s)
}

// place queues what a database is to say of the groups.
func (m *move) place(b *pgx.Batch, cell string, generation int64, s placement.State, pinned *bool) {
	b.Queue(sqlPlace.In(m.in), m.groups, cell, generation, string(s), pinned)
}

// leave makes the source decide nothing more about the groups.
func (m *move) leave(ctx context.Context) error {
	if err := m.unsplit(ctx); err != nil {
		return err
	}
	return m.change(ctx, m.source, func(s *policy.Snapshot) error {
		for _, g := range m.groups {
			if err := s.Elsewhere(g); err != nil || s.GenerationOf(g) >= m.generation {
				return errNotMoving
			}
		}
		return m.unpaused(ctx)
	}, func(b *pgx.Batch) { m.place(b, m.to.Name, m.generation, placement.Leaving, nil) })
}

// unpaused returns errPaused if the source has lost leases, perhaps: the target does not know of its pause.
func (m *move) unpaused(ctx context.Context) error {
	e, err := epoch.Read(ctx, m.source, m.in)
	if err == nil && e.ClosedUntil.After(e.Now) {
		err = errPaused
	}
	return err
}

// unsplit returns an error if a set has locks of the groups and of others: its holder could renew it in no cell.
func (m *move) unsplit(ctx context.Context) error {
	rows, err := m.source.Query(ctx, sqlSplitSets.In(m.in), m.names.First, m.names.Beyond, m.groups)
	if err != nil {
		return err
	}
	locks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(locks) > 0 {
		err = fmt.Errorf("the locks %s are held or waited for in sets with locks of other groups; move these groups together, or try again "+
			"when the sets are released", strings.Join(locks, ", "))
	}
	return err
}

// A cargo is what the source says, once the groups have left it, of what is not in their rows.
type cargo struct {
	sessions string // their rows, as JSON
	refs     []int64
	last     time.Time     // the source's clock
	longest  time.Duration // of its leases
	copied   int64         // the newest batch whose events are in the target
	newest   int64         // the newest batch of its events
}

// carry takes the groups to the target. Its commit is the switch: from then on the target decides about them.
func (m *move) carry(ctx context.Context, copied int64) error {
	if err := m.unsplit(ctx); err != nil { // nothing has changed since the groups left
		return err
	}
	if err := m.unpaused(ctx); err != nil {
		return err
	}
	if err := m.comes(ctx); err != nil {
		return err
	}
	c := cargo{copied: copied}
	err := m.again(ctx, m.source, func() (err error) {
		c.sessions, c.refs, err = m.lockedSessions(ctx)
		return err
	})
	if err == nil {
		err = m.describe(ctx, &c)
	}
	if err == nil {
		err = m.alone(ctx, m.target)
	}
	if err != nil {
		return err
	}
	err = m.write(ctx, &c)
	database.Rollback(m.target) // nothing is left of it after a commit
	return m.explain(m.target, err)
}

// write writes the groups into the target, in the transaction that has begun, and commits.
func (m *move) write(ctx context.Context, c *cargo) error {
	if _, err := m.target.Exec(ctx, sqlClear.In(m.in), m.names.First, m.names.Beyond); err != nil {
		return err
	}
	if err := m.copyRows(ctx); err != nil {
		return err
	}
	if err := m.copyEvents(ctx, c.copied, c.newest); err != nil {
		return err
	}
	var at time.Time
	release := func() { database.Rollback(m.source) }
	defer release()
	return policy.ChangePlacement(ctx, m.target, m.in, m.turn, func(s *policy.Snapshot) error {
		if err := m.may(&s.Map); err != nil {
			return err
		}
		if err := m.again(ctx, m.source, func() error { return m.holdSessions(ctx, c) }); err != nil {
			return err
		}
		return m.target.QueryRow(ctx, "select clock_timestamp()").Scan(&at)
	}, func(b *pgx.Batch) {
		m.queueSessions(b, c.sessions, c.refs)
		m.names.QueueRebase(b, m.in, at, c.last)
		epoch.QueueRaise(b, m.in, c.newest)
		epoch.QueueLongest(b, m.in, c.longest)
		m.place(b, m.to.Name, m.generation, placement.Here, m.pinned)
	}, release)
}

// comes returns an error if the target does not take the groups.
func (m *move) comes(ctx context.Context) error {
	s, err := policy.Read(ctx, m.target, m.in)
	if err != nil {
		return err
	}
	return m.may(&s.Map)
}

// may returns errArrived if the target has the groups by this move, and errNotMoving if it knows of something later.
func (m *move) may(target *placement.Map) error {
	for _, g := range m.groups {
		if r := target.Rows[g]; r.State == placement.Here && r.Generation == m.generation {
			return errArrived
		}
		if target.GenerationOf(g) >= m.generation {
			return errNotMoving
		}
	}
	return nil
}

// describe reads the source's clock, the length of its longest lease, and the newest batch of its events.
func (m *move) describe(ctx context.Context, c *cargo) error {
	e, err := epoch.Read(ctx, m.source, m.in)
	if err == nil {
		err = m.source.QueryRow(ctx, sqlNewestBatch.In(m.in)).Scan(&c.newest)
	}
	c.last, c.longest = e.Now, e.Longest
	return err
}

// finish deletes what the source has of the groups, which have arrived. A session that has ended at the source since is
// ended at the target first.
func (m *move) finish(ctx context.Context) error {
	if err := m.done(carried); err != nil {
		return err
	}
	var refs []int64
	err := m.change(ctx, m.source, func(s *policy.Snapshot) error {
		for _, g := range m.groups {
			if r := s.Rows[g]; r.State != placement.Leaving || r.Generation != m.generation {
				return errNotMoving
			}
		}
		var rows string
		if err := m.source.QueryRow(ctx, sqlEnded.In(m.in), m.names.First, m.names.Beyond).Scan(&rows, &refs); err != nil {
			return err
		}
		return m.again(ctx, m.target, func() error { return m.exec(ctx, m.target, database.RowTimeout, sqlEndLikewise.In(m.in), rows) })
	}, func(b *pgx.Batch) {
		b.Queue(sqlNoOtherEnd.In(m.in), m.names.First, m.names.Beyond, refs)
		b.Queue(sqlClear.In(m.in), m.names.First, m.names.Beyond)
		m.place(b, m.to.Name, m.generation, placement.Gone, new(bool))
	})
	if err != nil && !errors.Is(err, errNotMoving) {
		return fmt.Errorf("the groups are in the cell %s, and what is left of them in %s could not be deleted; run the same command again: %w",
			m.to.Name, m.from.Name, err)
	}
	return m.done(finished)
}

// abort leaves the groups with the source. The target refuses them first, so that a command that was stopped in between
// cannot bring them there later. It returns errArrived if they are there.
func (m *move) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, abortTimeout)
	defer cancel()
	err := m.reconnect(ctx)
	if err != nil {
		return err
	}
	err = m.change(ctx, m.target, func(s *policy.Snapshot) error {
		if err := m.may(&s.Map); !errors.Is(err, errNotMoving) {
			return err
		}
		for _, g := range m.groups {
			if s.GenerationOf(g) > m.generation {
				return errNotMoving
			}
		}
		return nil // it was refused before
	}, func(b *pgx.Batch) { m.place(b, m.from.Name, m.generation, placement.Refused, new(bool)) })
	if err != nil {
		return err
	}
	return m.change(ctx, m.source, func(s *policy.Snapshot) error {
		for _, g := range m.groups {
			if r := s.Rows[g]; r.State != placement.Leaving || r.Generation != m.generation {
				return errNotMoving
			}
		}
		return nil
	}, func(b *pgx.Batch) { m.place(b, m.from.Name, m.generation+1, placement.Here, nil) })
}
