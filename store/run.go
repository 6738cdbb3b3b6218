package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// Bounds of the pause before a batch that failed is tried again.
const (
	firstPause = 10 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// newPause returns the pauses between one try and the next.
func newPause() *backoff.ExponentialBackOff {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstPause, maxPause
	return pause
}

// wanted is what a batch needs from its first round trip.
type wanted struct {
	settings       bool              // those of its connection do not hold
	names          []string          // in order, without duplicates
	unseen         []string          // those of them that may have no anchor
	crowded        []string          // those of them expected to be
	remembered     map[string]memory // and how those are of which nothing need be read
	refs           []int64
	tokens, events int
	lenience       time.Duration // see outage
	known          known         // of the database's epochs
}

// want says what the calls need. At a crowded lock each of them may promote a
// waiter; who promotes more draws more.
func (s *Store) want(calls []*call) *wanted {
	w := &wanted{settings: s.pooled}
	for _, c := range calls {
		w.names = append(w.names, c.Req.Names()...)
		if _, asks := c.Req.(acquireCall); asks { // others find their lease, as a rule
			w.refs = appendRefs(w.refs, c.Req)
		}
		tokens, events := c.Req.Needs()
		w.tokens += tokens
		w.events += events
	}
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)
	w.unseen = s.seen.missing(w.names)
	w.lenience, w.known = s.outage.lenience(), s.epochs.known()
	if w.crowded, w.remembered = s.crowd.of(w.names); len(w.crowded)+len(w.remembered) > 0 {
		w.tokens += len(calls)
		w.events += 2 * len(calls)
	}
	return w
}

// run answers the calls of the group. It tries until it has, or until their callers have left.
// Those that wait for a locked row go through onBlocked, which returns what is to
// be tried again.
func (s *Store) run(g *group, calls []*call, onBlocked func([]*call) []*call) {
	pause := newPause()
	for calls = stillThere(calls); len(calls) > 0; calls = stillThere(calls) {
		begun, f, err := s.attempt(g, calls)
		if err == nil {
			return
		}
		calls = begun
		switch f {
		case unknown:
			s.giveUp(calls, err)
			return
		case failed:
			s.log.Error("batch failed", "error", err, "calls", len(calls))
			s.runAlone(g, calls, err, onBlocked)
			return
		case blocked:
			calls = onBlocked(calls)
			continue
		}
		if errors.Is(err, errNoStandby) {
			refuse(calls, noStandby())
			return
		}
		if s.mended(err) {
			continue
		}
		s.outage.note()
		s.log.Warn("batch failed; retrying", "error", err, "calls", len(calls))
		if readOnly(err) {
			s.pool.Reset()
			s.deciding.Reset()
		}
		if !s.sleep(pause.NextBackOff()) {
			refuse(calls, unavailable(err))
			return
		}
	}
}

// runAlone runs each of the calls in a transaction of its own, so that one which
// cannot be done takes no other with it. The error is what a single call gets.
func (s *Store) runAlone(g *group, calls []*call, err error, onBlocked func([]*call) []*call) {
	if len(calls) == 1 {
		refuse(calls, internal(err))
		return
	}
	for i := range calls {
		s.run(g, calls[i:i+1], onBlocked)
	}
}

// attempt runs the calls whose callers are still there in one transaction and
// answers them. If that fails, it returns those and what is known of it.
func (s *Store) attempt(g *group, calls []*call) ([]*call, fate, error) {
	if err := s.epochs.known().covers(calls); err != nil {
		return calls, again, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	conn, err := s.deciding.Acquire(ctx)
	if err != nil {
		return calls, again, err
	}
	calls = begin(calls)
	if len(calls) == 0 {
		conn.Release()
		return nil, again, nil
	}
	calls, gone, err := s.swapAhead(ctx, g, conn, calls)
	if gone {
		return nil, again, nil
	}
	if len(calls) == 0 || err != nil {
		conn.Release()
		return calls, fateOf(err), err
	}
	t := newTx(conn.Conn(), s.self)
	outcomes, err := t.decide(ctx, calls, s.want(calls))
	if err != nil {
		t.undo()
		conn.Release()
		rewind(calls)
		return calls, fateOf(err), err
	}
	return s.commit(g, conn, t, calls, outcomes)
}

// decide loads what the calls want and applies them in order.
func (t *tx) decide(ctx context.Context, calls []*call, w *wanted) ([]outcome, error) {
	if err := t.load(ctx, w); err != nil {
		return nil, err
	}
	if err := t.loadEndings(ctx, calls); err != nil {
		return nil, err
	}
	outcomes := make([]outcome, len(calls))
	for i, c := range calls {
		var err error
		if outcomes[i], err = t.apply(ctx, c.Req); err != nil {
			return nil, err
		}
	}
	return outcomes, t.epoch.covers(t.longest)
}

func appendRefs(refs []int64, cmd lock.Command) []int64 {
	for _, ref := range cmd.Refs() {
		refs = append(refs, int64(ref))
	}
	return refs
}

// undo rolls back as well as it can; the pool drops a connection that is not idle.
func (t *tx) undo() { rollback(t.conn) }

func rollback(conn *pgx.Conn) {
	if conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tripTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		conn.Close(ctx) //nolint:errcheck // it is given up
	}
}

// begin marks the calls as begun and leaves out those whose callers have left.
func begin(calls []*call) []*call {
	return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return !c.Begin() })
}

// stillThere leaves out the calls whose callers have left.
func stillThere(calls []*call) []*call {
	calls = begin(calls)
	rewind(calls)
	return calls
}

func rewind(calls []*call) {
	for _, c := range calls {
		c.Rewind()
	}
}

func refuse(calls []*call, err error) {
	for _, c := range calls {
		if c.Begin() {
			c.Answer(outcome{Decision: lock.Decision{Err: err}}, nil)
		}
	}
}

// sleep pauses and returns true, or false at once when the store closes.
func (s *Store) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.ctx.Done():
		return false
	}
}
