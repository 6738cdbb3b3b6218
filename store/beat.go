package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// beatPause is the time between two beats, on average. A replica is taken to live
// for lock.AliveFor since the last, so it may miss one or two.
const beatPause = 500 * time.Millisecond

const (
	// keepReplicas is for how long a replica that was not heard of is remembered.
	keepReplicas = time.Hour
	// forgetTimeout is how long that may take, also on the way out.
	forgetTimeout = time.Second
)

// beats says that this replica lives, for as long as calls wait or watch here, and
// finds out which of them need not wait any more. That is the safety net below
// every notification: with nothing else, everybody is served.
func (s *Store) beats() {
	var silent, blind trouble
	last := time.Now()
	for s.sleep(jittered(beatPause)) {
		began := time.Now() // the sign of life counts from no later
		err := s.beatOnce()
		s.troubled(&silent, "heartbeat", err)
		s.watchEpoch(&blind)
		if err != nil {
			s.outage.note()
			continue
		}
		if time.Since(last) > lock.ReplicaTTL/2 {
			s.seats.askAll() // others may have passed over those who wait here
		}
		last = began
	}
}

// beatOnce says that this replica lives if anybody waits or watches here, and
// hears of the others in any case.
func (s *Store) beatOnce() error {
	st, waiting := s.seats.standing()
	watching := s.tail.watched()
	err := s.relaxed(func(b *pgx.Batch) {
		if waiting > 0 || watching {
			b.Queue(sqlBeat, int64(s.self), waiting, watching, lock.ReplicaTTL)
		}
		b.Queue(sqlOthers, int64(s.self)).QueryRow(s.scanOthers)
	})
	if err != nil || len(st.names) == 0 {
		return err
	}
	return s.askUnseated(st)
}

// askUnseated has the calls ask how they stand that need not wait any more.
func (s *Store) askUnseated(st standing) error {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, sqlUnseated, st.names, st.places, st.attachments)
	if err != nil {
		return err
	}
	unseated, err := pgx.CollectRows(rows, pgx.RowTo[lock.Attachment])
	s.seats.ask(unseated...)
	return err
}

func (s *Store) scanOthers(row pgx.Row) error {
	var waiting int
	var watching bool
	err := row.Scan(&waiting, &watching)
	if err == nil {
		s.seats.heardOf(waiting)
		s.othersWatch.Store(watching)
	}
	return err
}

// forgetReplicas forgets the replica, which stops, and those that were not heard
// of for long.
func (s *Store) forgetReplicas(stops lock.Replica) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), forgetTimeout)
	defer cancel()
	if _, err := s.pool.Exec(ctx, sqlForgetReplicas, int64(stops), keepReplicas); err != nil {
		s.log.Debug("cannot delete rows of dead replicas; retrying", "error", err)
	}
}
