package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// longestLook is for how long one call waits for something to happen.
const longestLook = lock.MaxWait / 2

type watchCommand struct {
	Name string `arg:"" optional:"" help:"The lock's name; all locks if not given."`
	serviceFlags
	retryFlags
	outputFlags

	Prefix string        `placeholder:"TEXT" help:"Only locks whose names begin with this."`
	From   string        `default:"now" placeholder:"WHERE" help:"Where to begin: now, oldest, or after the event with this id."`
	For    time.Duration `placeholder:"DURATION" help:"Stop after this time. If not given, when interrupted."`
	Count  int           `placeholder:"N" help:"Stop after so many events."`
}

// Help shows how to use it.
func (watchCommand) Help() string {
	return `Prints what happens as it happens, one event a line, until it is interrupted. With -o json each line is a JSON object. ` +
		`Through an outage it goes on where it was: nothing is missing, nothing comes twice.

    paddock watch jobs:nightly
    paddock watch --prefix jobs: --from oldest -o json | jq -r 'select(.kind == "expired") | .lock'`
}

// Run prints events until that is to end.
func (c *watchCommand) Run(ctx context.Context, p *program) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	locks, err := c.within(longestLook + answerWithin)
	if err != nil {
		return err
	}
	until := ctx
	if c.For > 0 {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	w := &watcher{program: p, locks: locks, form: c.Output, remain: c.Count}
	err = w.follow(until, query, c.limit())
	unanswered := (*lock.Error)(nil)
	if errors.As(err, &unanswered) && until.Err() != nil && (ctx.Err() != nil || !w.away) {
		return nil
	}
	return refused(err)
}

// query returns where to begin, or a usage error.
func (c *watchCommand) query() (lock.EventQuery, error) {
	q := lock.EventQuery{Name: c.Name, Prefix: c.Prefix, Cursor: c.From}
	switch id, err := strconv.ParseInt(c.From, 10, 64); {
	case c.From == "oldest":
		q.Cursor = ""
	case c.From != lock.CursorNow && (err != nil || id < 0):
		return q, usagef("--from is %q; give now, oldest, or the id of an event", c.From)
	}
	if c.Count < 0 {
		return q, usagef("--count is %d; give how many events, or leave it out", c.Count)
	}
	if err := cmp.Or(c.check(), checkNotNegative("--for", c.For)); err != nil {
		return q, err
	}
	_, err := q.Resolve()
	return q, refused(err)
}

// A watcher prints the events of a query.
type watcher struct {
	*program
	locks  lock.Service
	form   string
	remain int  // how many events are still to be printed; zero or less: no bound
	away   bool // whether the service has not answered of late
}

// follow prints events until ctx ends or there were enough. Before the first answer
// an outage may last for the limit, and after it for ever.
func (w *watcher) follow(ctx context.Context, q lock.EventQuery, limit time.Duration) error {
	header := w.form == asTable
	for {
		page, err := w.page(ctx, q, limit)
		if err != nil {
			return err
		}
		if header {
			if err := w.line("AT", "ID", "KIND", "LOCK", "TOKEN", "HOLDER", "REASON"); err != nil {
				return err
			}
		}
		if page.Gap {
			w.log.Warn("events are missing here: they are not kept any longer", "after", q.Cursor)
		}
		for _, e := range page.Items {
			if err := w.tell(e); err != nil {
				return err
			}
			if w.remain--; w.remain == 0 {
				return nil
			}
		}
		q.Cursor, q.Wait, limit, header = page.Next, longestLook, endless, false
	}
}

// page returns what follows the cursor, once the service has answered.
func (w *watcher) page(ctx context.Context, q lock.EventQuery, limit time.Duration) (lock.Page[lock.Event], error) {
	page, err := insist(ctx, w.log, limit, func(ctx context.Context) (lock.Page[lock.Event], error) {
		page, err := w.locks.Events(ctx, q)
		w.away = w.away || isOutage(err) && ctx.Err() == nil
		return page, err
	})
	if err == nil && w.away {
		w.log.Info("there are answers again, going on", "after", q.Cursor)
		w.away = false
	}
	return page, err
}

// tell prints an event.
func (w *watcher) tell(e lock.Event) error {
	if w.form == asJSON {
		return writeJSON(w.stdout, eventTo(e), "")
	}
	return w.line(local(e.At), strconv.FormatInt(e.ID, 10), e.Kind.String(), e.Name, token(e.Token), legible(e.Holder), legible(e.Reason))
}

// line prints the cells of a row whose widths cannot be known before.
func (w *watcher) line(at, id, kind, name, token, holder, reason string) error {
	row := fmt.Sprintf("%-25s  %-8s  %-10s  %-24s  %-8s  %-20s  %s", at, id, kind, name, token, holder, reason)
	_, err := fmt.Fprintln(w.stdout, strings.TrimRight(row, " "))
	return err
}
