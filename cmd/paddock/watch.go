package main

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// pollTime is how long one call waits for events: less than the time-outs of common proxies.
const pollTime = lock.PlaceRetention

type watchCommand struct {
	Name string `arg:"" optional:"" complete:"lock" unset:"all locks" help:"The lock's name."`
	serviceFlags
	retryFlags
	outputFlags

	Prefix string        `placeholder:"TEXT" complete:"scope" help:"Only locks whose names begin with this."`
	From   string        `default:"now" placeholder:"WHERE" complete:"now,oldest" help:"Where to start: now, oldest, or after the event with this id."`
	For    time.Duration `unset:"no limit" help:"Stop after this time."`
	Count  int           `placeholder:"N" unset:"no limit" help:"Stop after N events."`
}

func (watchCommand) Help() string {
	return `Prints events as they happen, one a line, until it is interrupted. With -o json each line is a JSON object.
After an outage it continues where it was, without gaps or duplicates.

    paddock watch jobs:nightly
    paddock watch --prefix jobs: --from oldest -o json | jq -r 'select(.kind == "expired") | .lock'`
}

// Run prints events until one of the flags, or ctx, ends it.
func (c *watchCommand) Run(ctx context.Context, p *program) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	locks, err := c.clientWithTimeout(pollTime + attemptTimeout)
	if err != nil {
		return err
	}
	until := ctx
	if c.For > 0 {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	w := &watcher{program: p, locks: locks, out: p.stream(c.Output, eventColumns()...), remain: c.Count}
	err = w.follow(until, query, c.limit())
	answer := (*lock.Error)(nil)
	if errors.As(err, &answer) && until.Err() != nil && (ctx.Err() != nil || !w.failing) {
		return nil
	}
	return explain(err)
}

// query returns the first query, or a usage error.
func (c *watchCommand) query() (paddock.EventQuery, error) {
	q := paddock.EventQuery{Prefix: c.Prefix, Cursor: c.From}
	if c.Name != "" {
		q.Names = []string{c.Name}
	}
	switch id, err := strconv.ParseInt(c.From, 10, 64); {
	case c.From == "oldest":
		q.Cursor = ""
	case c.From != paddock.CursorNow && (err != nil || id < 0):
		return q, usagef("--from is %q; give now, oldest, or the id of an event", c.From)
	}
	if c.Count < 0 {
		return q, usagef("--count is %d; give a positive number of events, or leave it out", c.Count)
	}
	_, err := q.Resolve()
	return q, explain(err)
}

// A watcher prints the events of a query.
type watcher struct {
	*program
	locks   paddock.Service
	out     *stream
	remain  int  // events still to be printed; zero or less: no bound
	failing bool // the last call was not answered
}

// follow prints events until ctx ends or their number is reached. Before the first answer an outage may last for the
// limit, later without one.
func (w *watcher) follow(ctx context.Context, q paddock.EventQuery, limit time.Duration) error {
	for {
		page, err := w.page(ctx, q, limit)
		if err != nil {
			return err
		}
		if err := w.out.begin(); err != nil {
			return err
		}
		if page.Gap {
			w.log.Warn("events missing: no longer retained", "after", q.Cursor)
		}
		warnUnreadable(w.log, page.Unreadable)
		for _, e := range page.Items {
			if err := w.printEvent(e); err != nil {
				return err
			}
			if w.remain--; w.remain == 0 {
				return nil
			}
		}
		q.Cursor, q.Wait, limit = page.Next, pollTime, noLimit
	}
}

// page returns the events after the cursor, once the service has answered.
func (w *watcher) page(ctx context.Context, q paddock.EventQuery, limit time.Duration) (paddock.Page[lock.Event], error) {
	page, err := retry(ctx, w.log, limit, func(ctx context.Context) (paddock.Page[lock.Event], error) {
		page, err := w.locks.Events(ctx, q)
		w.failing = w.failing || mayPass(err) && ctx.Err() == nil
		return page, err
	})
	if err == nil && w.failing {
		w.log.Info("service answers again; continuing", "after", q.Cursor)
		w.failing = false
	}
	return page, err
}

// eventColumns are the columns of a table of events that are printed as they happen.
func eventColumns() []column {
	return []column{
		{"AT", instantWidth}, {"ID", 8}, {"KIND", 10}, {"LOCK", 24}, {"TOKEN", 8}, {"HOLDER", 20}, {"BY", 12}, {"REASON", 20},
	}
}

func (w *watcher) printEvent(e lock.Event) error {
	return w.out.print(wire.EventOf(e), e.Name, local(e.At), strconv.FormatInt(e.ID, 10), e.Kind.String(), e.Name,
		token(e.Token), e.Holder, cmp.Or(e.Caller.Name, none), e.Explanation())
}
