package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// swap writes the units, and returns the calls of those whose locks had changed.
func (a *attempt) swap(units []*unit) (again []*call, effect database.Effect, err error) {
	s := &row.Swap{
		Schema: a.db.Schema,
		Epoch:  a.epoch, Commit: a.locks, AllOrNone: a.allOrNone, Pooled: a.db.Pooled, Changes: changesOf(units),
	}
	for i, u := range units {
		if latest := u.at.Add(a.maxLag); i == 0 || latest.Before(s.Latest) {
			s.Latest = latest
		}
		if u.at.After(s.Now) {
			s.Now = u.at
		}
	}
	calls := callsOf(units)
	var done row.Written
	sent := time.Now()
	err, late := a.commit(a.ctx, a.inbox, len(calls), func(ctx context.Context) (err error) {
		done, err = s.Run(ctx, a.conn.Conn())
		return err
	})
	again, effect, err = a.swapped(units, done, reading{shown: done.Clock, after: sent, before: time.Now()}, err)
	if late {
		<-a.late
		a.overtaken = true
	}
	return again, effect, err
}

// changesOf returns the changes of the units in the order of the names, in which they are written, so that no two
// replicas wait for each other. The locks of one unit may be before and after those of another.
func changesOf(units []*unit) (all []*row.Change) {
	for _, u := range units {
		all = append(all, u.changes...)
	}
	slices.SortFunc(all, func(a, b *row.Change) int { return strings.Compare(a.After.Name, b.After.Name) })
	return all
}

// swapped concludes a swap: units that were written are published and answered, and the others missed.
func (a *attempt) swapped(units []*unit, done row.Written, clock reading, err error) (again []*call, effect database.Effect, _ error) {
	if err != nil {
		return a.failed(units, err)
	}
	a.cache.mu.Lock()
	current := a.cache.isOf(a.epoch)
	switch {
	case done.Clock.IsZero():
		a.cache.clock = reading{} // it may be the reason why nothing was written
	case current:
		a.cache.clock = a.cache.clock.morePrecise(clock)
	}
	for _, u := range units {
		if u.changes[0].Written {
			u.setTokens(done)
		}
		for _, c := range u.changes {
			if c.Written && current {
				a.cache.put(c.Left())
			} else {
				a.cache.drop(c.After.Name)
			}
		}
	}
	a.cache.mu.Unlock()
	a.epochs.Observe(a.epoch, done.LastEvent())
	var written []*unit
	for _, u := range units {
		if slices.ContainsFunc(u.changes, func(c *row.Change) bool { return !c.Written }) {
			a.missed(u)
			again = append(again, callsOf([]*unit{u})...)
			continue
		}
		written = append(written, u)
		again = append(again, u.deferred...)
	}
	a.publishAndAnswer(written)
	return again, database.Again, nil
}

// failed returns the calls of a swap that failed, and what is known of them.
func (a *attempt) failed(units []*unit, err error) ([]*call, database.Effect, error) {
	calls := callsOf(units)
	effect := database.EffectOfCommit(err)
	switch {
	case pgconn.SafeToRetry(err):
		effect = database.Again // nothing was sent
	case effect == database.Unknown:
		var sent, deferred []*call
		for _, u := range units {
			sent, deferred = append(sent, u.calls...), append(deferred, u.deferred...)
		}
		a.giveUp(sent, err)
		return deferred, database.Again, nil
	}
	a.rollback()
	if effect != database.Blocked {
		a.cache.mu.Lock()
		for _, u := range units {
			for _, name := range u.names {
				a.cache.drop(name)
			}
		}
		a.cache.mu.Unlock()
	}
	if isTooLate(err) {
		for _, u := range units {
			a.missed(u)
		}
		return calls, database.Again, nil
	}
	return calls, effect, err
}

// missed notes that the locks of the unit had changed. It returns the largest number of misses of any of its calls.
func (a *attempt) missed(u *unit) (most int) {
	a.round.Missed += len(u.calls)
	for _, c := range u.calls {
		a.misses[c]++
		most = max(most, a.misses[c])
	}
	return most
}

// commit runs write, which commits, and returns its error. late says that it has taken so long that the inbox goes on
// without it; then the caller must free its slot in w.late.
//
// A commit is never cancelled, so it may never end: while no standby confirms it, or until TCP gives up a silent
// connection.
func (w *worker) commit(ctx context.Context, from *inbox, calls int, write func(context.Context) error) (err error, late bool) {
	committed, detached := make(chan struct{}), make(chan bool, 1)
	watch := time.AfterFunc(commitPatience, func() { detached <- w.detach(from, calls, committed) })
	err = write(context.WithoutCancel(ctx))
	close(committed)
	return err, !watch.Stop() && <-detached
}

// detach makes the inbox go on without its running batch, once there is a slot for another late commit, and returns
// true; or it returns false if the commit has ended meanwhile.
func (w *worker) detach(from *inbox, calls int, committed <-chan struct{}) bool {
	select {
	case <-committed:
		return false
	case w.late <- struct{}{}:
	}
	w.db.Log.Warn("commit is slow", "calls", calls)
	from.detach()
	return true
}

// giveUp answers calls that may have been done, or may not.
func (w *worker) giveUp(calls []*call, err error) {
	if len(calls) == 0 {
		return
	}
	w.db.Outage.Note()
	w.db.Log.Error("commit outcome unknown", "error", err, "calls", len(calls))
	refuse(calls, database.UnknownOutcome(err))
}

// isTooLate reports whether a swap was undone because a decision did not hold any more, or could not be written whole.
func isTooLate(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && pg.Code == row.TooLate
}
