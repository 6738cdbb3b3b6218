package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// An attempt looks, decides, swaps and publishes once, for some units. With locks it is one transaction whose look locks
// the rows; otherwise the swap is a transaction of its own.
type attempt struct {
	*worker
	inbox  *inbox // that the calls came from
	conn   *pgxpool.Conn
	locks  bool
	misses map[*call]int

	epoch epoch.Epoch
	clock reading   // of the server of epoch
	now   time.Time // the instant of the next decisions
	rows  map[string]row.Row
	ended map[lock.LeaseRef]lock.Event
	used  int        // tokens taken
	floor lock.Token // the greatest that a token had to be above
}

// run returns the calls that are to be tried again, and the error if that must wait.
func (a *attempt) run(units []*unit) (rest []*call, effect database.Effect, err error) {
	ctx, cancel := context.WithTimeout(a.db.Context(), database.TripTimeout)
	defer cancel()
	ready, err := a.decide(ctx, units)
	if err != nil {
		if a.locks {
			database.Rollback(a.conn.Conn())
		}
		effect := database.EffectOf(err)
		if errors.Is(err, row.ErrChanged) {
			for _, u := range units {
				if a.missed(u) > maxTornLooks {
					effect = database.Failed
				}
			}
		}
		return callsOf(units), effect, err
	}
	isReady := make(map[*unit]bool, len(ready))
	for _, u := range ready {
		isReady[u] = true
	}
	var writes []*unit
	for _, u := range units {
		switch {
		case !isReady[u]:
			rest = append(rest, callsOf([]*unit{u})...)
		case u.writes:
			writes = append(writes, u)
		default:
			a.answer(u)
			rest = append(rest, u.deferred...)
		}
	}
	writes, later := fitting(writes)
	rest = append(rest, callsOf(later)...)
	if len(writes) == 0 {
		if a.locks {
			database.Rollback(a.conn.Conn())
		}
		return rest, database.Again, nil
	}
	left, effect, err := a.swap(writes)
	return append(rest, left...), effect, err
}

// decide decides the units, on the cache where that is enough, and returns those that are decided. The others are to be
// tried again.
func (a *attempt) decide(ctx context.Context, units []*unit) (ready []*unit, err error) {
	var unknown []*unit
	if a.locks {
		unknown = units
	} else {
		ready, unknown = a.decideCached(units)
	}
	if len(unknown) == 0 {
		return ready, nil
	}
	before := a.epoch
	if err := a.look(ctx, unknown); err != nil {
		return nil, err
	}
	if !sameEpoch(before, a.epoch) {
		ready = nil
	}
	return a.decideFresh(ctx, ready, unknown)
}

// decideCached decides the units whose locks are in the cache. unknown are the others, and those that must be read.
func (a *attempt) decideCached(units []*unit) (ready, unknown []*unit) {
	a.rows = make(map[string]row.Row, len(units))
	a.cache.mu.Lock()
	a.epoch, a.clock = a.cache.epoch, a.cache.clock
	a.now = a.clock.at(time.Now())
	for _, u := range units {
		for _, name := range u.names {
			if r, ok := a.cache.get(name); ok && !a.clock.shown.IsZero() {
				a.rows[name] = r
			}
		}
	}
	a.cache.mu.Unlock()
	k := a.knowledge()
	for _, u := range units {
		if u.fresh = false; !a.hasRows(u) {
			unknown = append(unknown, u)
			continue
		}
		if u.decide(k) == decided {
			ready = append(ready, u)
		} else {
			unknown = append(unknown, u)
			a.returnTokens(u)
		}
	}
	return ready, unknown
}

// sameEpoch reports whether a decision in one of the epochs is one in the other: neither the server nor the pause of
// grants has changed.
func sameEpoch(a, b epoch.Epoch) bool {
	return a.Number == b.Number && a.Started.Equal(b.Started) && a.ClosedUntil.Equal(b.ClosedUntil)
}

func (a *attempt) hasRows(u *unit) bool {
	return !slices.ContainsFunc(u.names, func(name string) bool { _, ok := a.rows[name]; return !ok })
}

func (a *attempt) knowledge() *knowledge {
	return &knowledge{self: a.self, epoch: a.epoch, now: a.now, rows: a.rows, ended: a.ended, token: a.takeToken}
}

// returnTokens makes the tokens of decisions that are made again available for others.
func (a *attempt) returnTokens(u *unit) {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	a.cache.addTokens(a.epoch, u.tokens)
	a.used -= len(u.tokens)
}

func (a *attempt) takeToken(floor lock.Token) (lock.Token, bool) {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	a.used, a.floor = a.used+1, max(a.floor, floor)
	return a.cache.takeToken(floor)
}

// look reads the locks of the units, and draws tokens for their acquires.
func (a *attempt) look(ctx context.Context, units []*unit) error {
	l := row.Look{Lock: a.locks, Pooled: a.db.Pooled, AssumeAlive: a.db.Outage.AssumeAlive()}
	for _, u := range units {
		l.Names = append(l.Names, u.names...)
		known := a.hasRows(u) // then it is about to be refused, and needs no token
		for _, c := range u.calls {
			for _, ref := range c.Req.Refs() {
				for _, name := range c.Req.Names() {
					l.Ended = append(l.Ended, row.Ending{Ref: ref, Name: name})
				}
			}
			if tokens, _ := c.Req.Needs(); !known {
				l.Tokens += tokens
			}
		}
	}
	slices.Sort(l.Names)
	before, sent := a.epochs.Known(), time.Now()
	v, err := l.Run(ctx, a.conn.Conn())
	if err != nil {
		return err
	}
	if err := v.Epoch.Check(before); err != nil {
		return err
	}
	a.clock = reading{shown: v.Epoch.Now, after: sent, before: time.Now()}
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	a.cache.enter(v.Epoch, a.clock)
	a.cache.addTokens(v.Epoch, v.Tokens)
	if a.rows == nil {
		a.rows = v.Rows
	}
	for name, r := range v.Rows {
		a.rows[name] = r
		a.cache.put(r)
	}
	a.epoch, a.ended, a.now = v.Epoch, v.Ended, a.clock.at(time.Now())
	for _, u := range units {
		u.fresh = true
	}
	return nil
}

// decideFresh decides units that were just read. If tokens are short it draws some, and decides again.
func (a *attempt) decideFresh(ctx context.Context, ready, units []*unit) ([]*unit, error) {
	for len(units) > 0 {
		var short []*unit
		k := a.knowledge()
		for _, u := range units {
			switch u.decide(k) {
			case needsToken:
				short = append(short, u)
				a.returnTokens(u)
			case needsEpoch:
				return nil, u.tooLong
			default:
				ready = append(ready, u)
			}
		}
		if units = short; len(short) == 0 {
			break
		}
		tokens, err := row.Draw(ctx, a.conn.Conn(), a.epoch, tokenBlock+a.used)
		if err != nil {
			return nil, err
		}
		if len(tokens) == 0 {
			return nil, errMoved
		}
		a.cache.mu.Lock()
		a.cache.addTokens(a.epoch, tokens)
		a.cache.mu.Unlock()
	}
	return ready, nil
}

// errMoved is returned when a connection leads to another server than at the beginning of the attempt.
var errMoved = errors.New("the connection leads to another server than before")

// answer answers the calls of a unit, and publishes what was decided.
func (a *attempt) answer(u *unit) {
	outcomes := u.outcomes(a.clock)
	a.publish(outcomes)
	for i, c := range u.calls {
		c.Answer(outcomes[i], nil)
	}
}

// fitting returns as many of the units as a row of events has room for. Each alone fits.
func fitting(units []*unit) (now, later []*unit) {
	room := row.EventsPerBatch
	for _, u := range units {
		if u.events > room {
			later = append(later, u)
			continue
		}
		now, room = append(now, u), room-u.events
	}
	return now, later
}

// swap writes the units, and returns the calls of those whose locks had changed.
func (a *attempt) swap(units []*unit) (rest []*call, effect database.Effect, err error) {
	s := &row.Swap{Now: units[0].at, Oldest: units[0].at, Epoch: a.epoch, Commit: a.locks, Pooled: a.db.Pooled, Draw: a.toDraw()}
	for _, u := range units {
		if s.Changes = append(s.Changes, u.changes...); u.at.Before(s.Oldest) {
			s.Oldest = u.at
		} else if u.at.After(s.Now) {
			s.Now = u.at
		}
	}
	calls := callsOf(units)
	var done row.Written
	sent := time.Now()
	err, late := a.patiently(a.inbox, len(calls), func(ctx context.Context) (err error) {
		done, err = s.Run(ctx, a.conn.Conn())
		return err
	})
	rest, effect, err = a.swapped(units, done, reading{shown: done.Clock, after: sent, before: time.Now()}, err)
	if late {
		<-a.late
		a.finish(rest)
		return nil, database.Again, nil
	}
	return rest, effect, err
}

// toDraw returns how many tokens to draw for the next batches: enough for one like this. Tokens that none of its locks
// could have been granted do not count.
func (a *attempt) toDraw() int {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	if a.cache.above(a.floor) >= a.used {
		return 0
	}
	return max(tokenBlock, 2*a.used)
}

// swapped concludes a swap: units that were written are published and answered, and the others missed.
func (a *attempt) swapped(units []*unit, done row.Written, clock reading, err error) (rest []*call, effect database.Effect, _ error) {
	if err != nil {
		return a.failed(units, err)
	}
	a.cache.mu.Lock()
	current := a.cache.isOf(a.epoch)
	switch {
	case done.Clock.IsZero():
		a.cache.clock = reading{} // it may be the reason why nothing was written
	case current:
		a.cache.addTokens(a.epoch, done.Tokens)
		a.cache.clock = a.cache.clock.better(clock)
	}
	var greatest lock.Token
	for _, u := range units {
		for _, c := range u.changes {
			if a.cache.drop(c.After.Name); !c.Written {
				continue
			}
			if greatest = max(greatest, c.After.Token); current {
				a.cache.put(c.Left)
			}
		}
	}
	a.cache.mu.Unlock()
	a.epochs.Note(a.epoch, greatest, done.Event)
	for _, u := range units {
		if slices.ContainsFunc(u.changes, func(c *row.Change) bool { return !c.Written }) {
			a.missed(u)
			rest = append(rest, callsOf([]*unit{u})...)
			continue
		}
		a.answer(u)
		rest = append(rest, u.deferred...)
	}
	return rest, database.Again, nil
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
	if a.locks {
		database.Rollback(a.conn.Conn())
	}
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

// missed notes that the locks of the unit had changed. It returns how often that was so, for the call that met it most.
func (a *attempt) missed(u *unit) (most int) {
	for _, c := range u.calls {
		a.misses[c]++
		most = max(most, a.misses[c])
	}
	return most
}
