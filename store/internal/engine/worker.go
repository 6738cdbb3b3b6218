package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/tracing"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

const (
	// maxMisses is how many misses a call may have before its row is locked. A look that locks takes no more round
	// trips than another look, and no other replica can get in between.
	maxMisses = 1
	// maxTornLooks is how often a lock may change while it is read, before its calls fail: its rows contradict each
	// other.
	maxTornLooks = 10
	// commitPatience is how long a worker waits for a commit before it goes on without it.
	commitPatience = time.Second * database.Slowness
)

// A worker decides the batches of some of the names.
type worker struct {
	*shared
	inbox *inbox
	cache cache
}

// answerAll makes attempts until every call is answered or canceled. Calls that wait for a locked row go through
// onBlocked, which returns those to be tried again.
//
// overtaken: a commit took longer than commitPatience, so the inbox has started the next batch. Later calls may have
// been decided meanwhile, so the calls that the commit left undone were refused.
func (w *worker) answerAll(from *inbox, calls []*call, onBlocked func([]*call) []*call) (overtaken bool) {
	pause, misses := database.NewPause(), make(map[*call]int)
	for calls = stillThere(calls); len(calls) > 0; calls = stillThere(calls) {
		again, effect, err := w.try(from, calls, misses)
		if err == nil {
			calls = again
			continue
		}
		switch calls = again; effect {
		case database.Failed:
			err = w.db.Explain(err)
			w.db.Log.Error("batch failed", "error", err, "calls", len(calls))
			if errors.Is(err, database.ErrOutdated) {
				refuse(calls, database.Internal(err, w.db.Schema))
				return false
			}
			return w.answerEach(from, calls, err, onBlocked)
		case database.Blocked:
			calls = onBlocked(calls)
			continue
		}
		if errors.Is(err, errOvertaken) {
			refuse(calls, database.Unavailable(err))
			return true
		}
		failed := w.recoverFrom(err)
		if failed == nil {
			continue
		}
		if errors.Is(failed, database.ErrNoStandby) {
			refuse(calls, failed)
			return false
		}
		if failed = w.db.Explain(failed); pgconnect.Denied(failed) || errors.Is(failed, database.ErrObjectsMissing) {
			refuse(calls, database.Internal(failed, w.db.Schema))
			return false
		}
		w.db.Outage.Note()
		w.db.Log.Warn("batch failed; retrying", "error", err, "calls", len(calls))
		if pgconnect.ReadOnly(err) {
			w.db.Reset()
		}
		if !w.db.Sleep(pause.NextBackOff()) {
			refuse(calls, database.Unavailable(err))
			return false
		}
	}
	return false
}

// recoverFrom does what the error of an attempt asks for. It returns nil if the calls can be decided again at once,
// otherwise why that failed, or err if nothing helps.
func (w *worker) recoverFrom(err error) error {
	if !errors.Is(err, policy.ErrChanged) {
		return w.epochs.Recover(err)
	}
	failed := w.policy.Refresh()
	if failed != nil {
		w.db.Log.Error("cannot read the policy; retrying", "error", failed)
	}
	return failed
}

// answerEach decides each of several calls in a batch of its own, so that a call that cannot be done does not fail the
// others. It refuses a single call with err.
func (w *worker) answerEach(
	from *inbox, calls []*call, err error, onBlocked func([]*call) []*call,
) (overtaken bool) {
	if len(calls) == 1 {
		refuse(calls, database.Internal(err, w.db.Schema))
		return false
	}
	for i := range calls {
		if w.answerAll(from, calls[i:i+1], onBlocked) {
			refuse(calls[i+1:], database.Unavailable(errOvertaken))
			return true
		}
	}
	return false
}

// try makes one attempt. It answers the calls that it could, and returns those to be tried again: without an error if
// that may be at once.
func (w *worker) try(from *inbox, calls []*call, misses map[*call]int) (again []*call, effect database.Effect, err error) {
	known, snapshot := w.epochs.Known(), w.policy.Newest()
	if err := known.CheckLength(longestOf(calls)); err != nil {
		return calls, database.Again, err
	}
	ctx, span := tracing.StartShared(w.db.Context(), "decide a batch", spansOf(calls))
	defer span.End()
	conn, err := w.connect(ctx)
	if err != nil {
		return calls, database.Again, err
	}
	defer conn.Release()
	w.cache.clearIfReconnected(w.db.Connected())
	now, later, locks := firstOf(unitsOf(beginAll(calls), snapshot), misses)
	a := &attempt{worker: w, known: known, snapshot: snapshot, ctx: ctx, inbox: from, conn: conn, locks: locks, misses: misses}
	a.allOrNone = slices.ContainsFunc(now, func(u *unit) bool { return len(u.names) > 1 })
	a.round.Calls, a.round.Locked = len(calls)-len(callsOf(later)), locks
	began := time.Now()
	again, effect, err = a.run(now)
	a.round.Took = time.Since(began)
	w.db.Observer.Round(a.round)
	if span.IsRecording() {
		span.SetAttributes(tracing.Calls.Int(a.round.Calls), tracing.Missed.Int(a.round.Missed),
			tracing.Looked.Bool(a.round.Looked), tracing.Locked.Bool(a.round.Locked))
	}
	again = append(again, callsOf(later)...)
	rewind(again)
	if a.overtaken {
		return again, database.Again, errors.Join(errOvertaken, err)
	}
	return again, effect, err
}

// errOvertaken is returned by try when the inbox has gone on without it.
var errOvertaken = errors.New("a commit took so long that later calls went first")

// spansOf returns the spans of the callers that are traced.
func spansOf(calls []*call) (spans []trace.Span) {
	for _, c := range calls {
		if span, ok := c.Caller.(trace.Span); ok {
			spans = append(spans, span)
		}
	}
	return spans
}

func (w *worker) connect(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, database.TripTimeout)
	defer cancel()
	return w.db.Deciding.Acquire(ctx)
}

// firstOf returns the units to decide now, whether to lock their rows, and the units to decide later. Units of one
// lock come first. Units of several locks follow by themselves, because one that misses makes all that are written
// with it miss. Units that have missed come last, with their rows locked: a lock that another replica keeps changing
// might miss forever.
func firstOf(units []*unit, misses map[*call]int) (now, later []*unit, locks bool) {
	var kinds [3][]*unit
	for _, u := range units {
		kind := 0
		switch {
		case slices.ContainsFunc(u.calls, func(c *call) bool { return misses[c] >= maxMisses }):
			kind = 2
		case len(u.names) > 1:
			kind = 1
		}
		kinds[kind] = append(kinds[kind], u)
	}
	for kind, units := range kinds {
		switch {
		case len(now) == 0:
			now, locks = units, kind == 2
		default:
			later = append(later, units...)
		}
	}
	return now, later, locks
}

func callsOf(units []*unit) (calls []*call) {
	for _, u := range units {
		calls = append(append(calls, u.calls...), u.deferred...)
	}
	return calls
}

// longestOf returns the longest lease, grace included, that the calls ask for.
func longestOf(calls []*call) (longest time.Duration) {
	for _, c := range calls {
		longest = max(longest, c.Req.traits.Length)
	}
	return longest
}

// beginAll marks the calls as begun, and leaves out those whose callers have left.
func beginAll(calls []*call) []*call {
	return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return !c.Begin() })
}

// stillThere leaves out the calls whose callers have left.
func stillThere(calls []*call) []*call {
	calls = beginAll(calls)
	rewind(calls)
	return calls
}

func rewind(calls []*call) {
	for _, c := range calls {
		c.Rewind()
	}
}

// refuse answers the calls with an error instead of a decision.
func refuse(calls []*call, err error) {
	for _, c := range calls {
		if c.Begin() {
			c.Answer(nil, err)
		}
	}
}
