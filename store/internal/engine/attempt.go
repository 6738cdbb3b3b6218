package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// An attempt looks, decides, swaps and publishes once, for some units. With locks it is one transaction whose look
// locks the rows; otherwise the swap is a transaction of its own.
type attempt struct {
	*worker
	ctx       context.Context // has the span of the attempt; ends with the replica
	inbox     *inbox          // that the calls came from
	conn      *pgxpool.Conn
	locks     bool
	allOrNone bool // some of the units have several locks, all of which are written or none
	misses    map[*call]int
	known     epoch.Known
	snapshot  *policy.Snapshot // that the units are for
	round     observe.Round
	// overtaken: its commit was late, so the inbox has gone on without it.
	overtaken bool

	epoch    epoch.Epoch
	clock    reading   // of the server of epoch
	now      time.Time // the instant of the next decisions
	ended    map[lock.LeaseRef]lock.Event
	sessions row.Sessions // of the calls
}

// run makes the attempt: the stages of the loop, in order. It returns the calls to be tried again, and the error if that
// must wait.
func (a *attempt) run(units []*unit) (again []*call, effect database.Effect, err error) {
	unread := units
	if !a.locks {
		unread = a.decideFromCache(units)
	}
	if len(unread) > 0 {
		if err := a.lookAndDecide(units, unread); err != nil {
			a.rollback()
			return callsOf(units), database.EffectOf(err), err
		}
	}
	var writes, done []*unit
	for _, u := range units {
		switch {
		case !u.decided:
			again = append(again, callsOf([]*unit{u})...)
		case u.writes:
			writes = append(writes, u)
		default:
			done = append(done, u)
			again = append(again, u.deferred...)
		}
	}
	a.publishAndAnswer(done)
	writes, later := splitToFit(writes)
	again = append(again, callsOf(later)...)
	if len(writes) == 0 {
		a.rollback()
		return again, database.Again, nil
	}
	left, effect, err := a.swap(writes)
	return append(again, left...), effect, err
}

// rollback ends the transaction of an attempt that locks rows and writes nothing.
func (a *attempt) rollback() {
	if a.locks {
		database.Rollback(a.conn.Conn())
	}
}

// decideFromCache decides the units whose locks are cached, and returns those whose locks must be read first.
func (a *attempt) decideFromCache(units []*unit) (unread []*unit) {
	a.cache.mu.Lock()
	a.epoch, a.clock = a.cache.epoch, a.cache.clock
	a.now = a.clock.at(time.Now())
	current := !a.clock.shown.IsZero() && a.snapshot.Check(a.epoch) == nil
	for _, u := range units {
		u.cached = current
		for i, name := range u.names {
			r, ok := a.cache.get(name)
			u.rows[i], u.cached = r, u.cached && ok
		}
	}
	a.cache.mu.Unlock()
	in := a.inputs()
	for _, u := range units {
		if !u.cached || u.decide(in) != success {
			unread = append(unread, u)
		}
	}
	return unread
}

// lookAndDecide reads the locks of the unread ones of all units, and decides these. Units that were decided from the
// cache are undecided again if the epoch that was read is another one.
func (a *attempt) lookAndDecide(all, unread []*unit) error {
	cached := a.epoch
	if err := a.look(unread); err != nil {
		return err
	}
	if !sameEpoch(cached, a.epoch) {
		for _, u := range all {
			u.decided = false
		}
	}
	in := a.inputs()
	for _, u := range unread {
		if u.unreadable {
			continue // the calls that are left are about other locks, or read again
		}
		if u.decide(in) == needsEpoch {
			return u.tooLong
		}
	}
	return nil
}

// sameEpoch reports whether a decision in one of the epochs is one in the other: neither the server nor the pause of
// grants has changed, nor the policy.
func sameEpoch(a, b epoch.Epoch) bool {
	return a.Number == b.Number && a.Started.Equal(b.Started) && a.ClosedUntil.Equal(b.ClosedUntil) && a.Policy() == b.Policy()
}

func (a *attempt) inputs() *inputs {
	return &inputs{
		self: a.self, epoch: a.epoch, policy: &a.snapshot.Policy, now: a.now, ended: a.ended, sessions: a.sessions,
		allowHold: a.allowHold,
	}
}

// look reads the locks of the units.
func (a *attempt) look(units []*unit) error {
	ctx, cancel := context.WithTimeout(a.ctx, database.TripTimeout)
	defer cancel()
	l := row.Look{
		Lock: a.locks, Schema: a.db.Schema, Pooled: a.db.Pooled, AssumeAlive: a.db.Outage.AssumeAlive(), Trees: a.snapshot.Version,
	}
	for _, u := range units {
		l.Names = append(l.Names, u.names...)
		for _, c := range u.calls {
			if c.Req.creates(a.locks) {
				l.Create = append(l.Create, c.Req.names...)
			}
			for i, ref := range c.Req.refs {
				l.Ended = append(l.Ended, row.Ending{Ref: ref, Name: c.Req.asked[i]})
			}
			if ref := c.Req.traits.Session; ref != 0 {
				l.Sessions = append(l.Sessions, ref)
			}
		}
	}
	slices.Sort(l.Names)
	slices.Sort(l.Create)
	l.Create = slices.Compact(l.Create)
	a.round.Looked = true
	sent := time.Now()
	v, err := l.Run(ctx, a.conn.Conn())
	if err != nil {
		return err
	}
	if err := cmp.Or(v.Epoch.Check(a.known), a.snapshot.Check(v.Epoch)); err != nil {
		return err
	}
	if err := v.ExpireSessions(ctx, a.conn.Conn()); err != nil {
		return err
	}
	a.clock = reading{shown: v.Epoch.Now, after: sent, before: time.Now()}
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	a.cache.enter(v.Epoch, a.clock)
	for _, r := range v.Rows {
		if r.Exists() && r.Err == nil {
			a.cache.put(r)
		}
	}
	a.epoch, a.ended, a.sessions, a.now = v.Epoch, v.Ended, v.Sessions, a.clock.at(time.Now())
	for _, u := range units {
		for i, name := range u.names {
			u.rows[i] = v.Rows[name]
		}
		u.fresh = true
		a.refuseUnreadable(u, v.Unread)
	}
	return nil
}

// refuseUnreadable refuses those calls of the unit whose locks or session cannot be read. Locks that changed while they
// were read are read again.
func (a *attempt) refuseUnreadable(u *unit, sessions row.Unread) {
	u.unreadable = false
	for _, r := range u.rows {
		u.unreadable = u.unreadable || r.Err != nil
	}
	if !u.unreadable && len(sessions) == 0 {
		return
	}
	u.calls, u.deferred = append(u.calls, u.deferred...), nil
	torn := slices.ContainsFunc(u.rows, func(r *row.Row) bool { return errors.Is(r.Err, row.ErrChanged) }) && a.missed(u) > maxTornLooks
	u.calls = slices.DeleteFunc(u.calls, func(c *call) bool {
		err := sessions[c.Req.traits.Session]
		for _, name := range c.Req.names {
			i, _ := slices.BinarySearch(u.names, name)
			if r := u.rows[i]; r.Err != nil && (torn || !errors.Is(r.Err, row.ErrChanged)) {
				err = r.Unreadable()
			}
		}
		if err != nil {
			a.db.NoteMalformed(err)
			refuse([]*call{c}, database.Internal(err, a.db.Schema))
		}
		return err != nil
	})
}

// publishAndAnswer tells the rest of the store what was decided, and then the callers.
func (a *attempt) publishAndAnswer(units []*unit) {
	if len(units) == 0 {
		return
	}
	outcomes := make([]*row.Outcome, 0, len(units))
	for _, u := range units {
		outcomes = u.answers(outcomes, a.clock)
	}
	a.publish(outcomes)
	for _, u := range units {
		for i, c := range u.calls {
			c.Answer(&u.outcomes[i], nil)
		}
	}
}

// splitToFit returns as many of the units as a row of events has room for, with their tokens numbered. Each alone fits.
func splitToFit(units []*unit) (now, later []*unit) {
	events, tokens := 0, 0
	for _, u := range units {
		if events+u.events > row.EventsPerBatch || tokens+u.tokens > row.TokensPerBatch {
			later = append(later, u)
			continue
		}
		for _, c := range u.changes {
			c.FirstToken = tokens
		}
		now, events, tokens = append(now, u), events+u.events, tokens+u.tokens
	}
	return now, later
}
