package sessions

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// maxRest is the longest time between two looks for sessions that have ended.
	maxRest = time.Second
	// minRest is the shortest.
	minRest = 20 * time.Millisecond
	// maxDue is how many ended sessions one look takes up.
	maxDue = 1000
	// portion is how many locks are ended at a time.
	portion = 1000
	// clearAfter is how long after its end a session without leases is cleared. No decision that began before the end
	// is committed later: a batch is given up after a round trip's timeout, and commits on an older state fail after
	// row.MaxLag.
	clearAfter = 3 * database.TripTimeout
	// pruneInterval is how often long ended sessions are deleted, pruneSize at a time.
	pruneInterval = time.Minute
	pruneSize     = 10_000
)

// Run ends the leases and places of sessions that have ended, and deletes sessions that ended longer than keep ago,
// until the database is stopped.
func (k *Keeper) Run(keep time.Duration) {
	var pruned time.Time
	for {
		rest, err := k.endDue()
		if err == nil && time.Since(pruned) > pruneInterval {
			pruned = time.Now()
			err = k.prune(keep)
		}
		k.db.Report("sessions", err)
		select {
		case <-k.db.Context().Done():
			return
		case <-k.wake:
			if !k.db.Sleep(minRest) {
				return
			}
		case <-time.After(rest):
		}
	}
}

// endDue ends what is left of the sessions that have ended, and returns when to look again. That the end of one
// session cannot be recorded, because its row is locked, delays no other session.
func (k *Keeper) endDue() (rest time.Duration, err error) {
	due, next, notRecorded := k.due()
	left, more, err := k.endSome(k.db.Context(), due)
	if err = errors.Join(notRecorded, err); err != nil {
		return maxRest, err
	}
	var done []lock.SessionRef
	again := more || len(due) == maxDue
	for _, s := range due {
		if ref := s.ID.Ref(); left[ref] > 0 {
			again = true
		} else if !more {
			done = append(done, ref)
		}
	}
	if len(done) > 0 {
		err = k.db.Within(func(ctx context.Context) error {
			_, err := k.db.Rest.Exec(ctx, sqlClear.In(k.db.Schema), done, clearAfter)
			return err
		})
	}
	if again {
		next = 0
	}
	return min(max(next, minRest), database.Jittered(maxRest)), err
}

// due returns ended sessions that may have leases or places left, see sql/due.sql, and how long it is until the next
// session is over. It first records the end of each session that is over. With an error it returns the sessions whose
// end it could record.
func (k *Keeper) due() (due []lock.Session, next time.Duration, err error) {
	var sessions row.Sessions
	err = k.db.Within(func(ctx context.Context) error {
		var refs []lock.SessionRef
		var left *float64
		b := &pgx.Batch{}
		b.Queue(sqlDue.In(k.db.Schema), maxDue, epoch.OfSession, clearAfter).Query(func(rows pgx.Rows) (err error) {
			refs, err = pgx.CollectRows(rows, pgx.RowTo[lock.SessionRef])
			return err
		})
		b.Queue(sqlNext.In(k.db.Schema)).QueryRow(func(row pgx.Row) error { return row.Scan(&left) })
		err := k.db.Rest.SendBatch(ctx, b).Close()
		if err != nil {
			return err
		}
		if next = maxRest; left != nil {
			next = time.Duration(min(*left, float64(maxRest.Milliseconds())) * float64(time.Millisecond))
		}
		var unread row.Unread
		sessions, unread, err = row.ReadSessions(ctx, k.db.Rest, k.db.Schema, refs)
		for _, bad := range unread {
			k.db.NoteMalformed(bad)
		}
		return err
	})
	for ref, s := range sessions {
		if s.Ended == 0 {
			changed, failed := k.Change(k.db.Context(), expire{ref})
			if failed != nil && !errors.Is(failed, lock.ErrNotFound) {
				err = errors.Join(err, failed)
				continue
			}
			s = changed.Session
		}
		if s.Ended != 0 {
			due = append(due, s)
		}
	}
	return due, next, err
}

// expire records the end of a session that is over.
type expire struct{ ref lock.SessionRef }

// Session returns the session.
func (e expire) Session() lock.SessionRef { return e.ref }

// Change records the end of the session, if it is over.
func (e expire) Change(s *lock.Session, now time.Time) (after lock.Session, changed bool, err error) {
	if s == nil {
		return lock.Session{}, false, lock.UnknownSession()
	}
	after, changed = s.Expire(now)
	return after, changed, nil
}

// endSome ends up to a portion of what the sessions have, and returns how many locks were found for each. more says
// that there are others, of any of them.
func (k *Keeper) endSome(ctx context.Context, all []lock.Session) (found map[lock.SessionRef]int, more bool, err error) {
	if len(all) == 0 {
		return nil, false, nil
	}
	byRef, refs := make(map[lock.SessionRef]lock.Session, len(all)), make([]lock.SessionRef, 0, len(all))
	for _, s := range all {
		byRef[s.ID.Ref()], refs = s, append(refs, s.ID.Ref())
	}
	ctx, cancel := context.WithTimeout(ctx, database.TripTimeout)
	defer cancel()
	locks, err := row.LeftOfSessions(ctx, k.db.Rest, k.db.Schema, refs, portion)
	if err != nil {
		return nil, false, err
	}
	found = make(map[lock.SessionRef]int)
	commands := make([]lock.Command, len(locks))
	for i, l := range locks {
		s := byRef[l.Ref]
		found[l.Ref]++
		commands[i] = lock.EndSession{Name: l.Name, Ref: l.Ref, How: s.Ended, Reason: s.Reason, By: s.EndedBy, SkipGrace: s.SkipGrace}
	}
	return found, len(locks) == portion, k.endAll(ctx, commands)
}

// endAll submits the commands, each until nothing is left of what it ends: sets are ended one by one. One that fails
// delays no other.
func (k *Keeper) endAll(ctx context.Context, commands []lock.Command) error {
	var failed []error
	for len(commands) > 0 {
		outcomes, errs := k.submit(ctx, commands)
		failed = append(failed, errs...)
		var rest []lock.Command
		for i, o := range outcomes {
			if errs[i] == nil && o.FollowUp != nil {
				rest = append(rest, o.FollowUp)
			}
		}
		commands = rest
	}
	return errors.Join(failed...)
}

// prune deletes sessions that ended longer than keep ago.
func (k *Keeper) prune(keep time.Duration) error {
	return k.db.Unhurried(func(ctx context.Context) error {
		_, err := k.db.Rest.Exec(ctx, sqlPrune.In(k.db.Schema), keep, pruneSize)
		return err
	})
}
