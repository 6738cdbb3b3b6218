package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

type eventsCommand struct {
	serviceFlags
	retryFlags
	outputFlags

	Prefix string `placeholder:"TEXT" complete:"scope" help:"Only locks whose names begin with this."`
	pastFlags
	Follow bool `short:"f" help:"Go on with the events that happen from now on, one a line, until it is interrupted."`
}

func (eventsCommand) Help() string {
	return `Prints the last events of all locks, oldest first. For one lock, with what its events say about each other, use
paddock history.

The kinds are ` + lock.KindNames() + `.

WHEN is an instant such as 2026-01-02T03:12:00Z, a time of the last 24 hours on this machine's clock such as 03:12, or how
long ago it was, such as 2h.

    paddock events --kind expired,revoked,refused --since 1h
    paddock events --around 03:12 --limit 200
    paddock events --deadlock --since 1d
    paddock events --prefix jobs: --holder worker-1 --limit 100
    paddock events --prefix jobs: --follow -o json | jq -r '.lock'

With --follow and -o json each line is a JSON object, as of paddock watch. After an outage it continues where it was,
without gaps or duplicates.`
}

// Run prints the last events, and with --follow the next ones until ctx ends.
func (c *eventsCommand) Run(ctx context.Context, p *program) error {
	q, err := c.query(paddock.EventQuery{Prefix: c.Prefix}, time.Now())
	if err != nil {
		return err
	}
	if c.Follow {
		return c.follow(ctx, p, q)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	events, err := read(ctx, p, c.retryFlags, func(ctx context.Context) (pastEvents, error) { return c.events(ctx, p, locks, q) })
	if err != nil {
		return err
	}
	events.warn(p.log, q)
	return p.print(c.Output, showEvents(events.all, c.epochsAmong(ctx, p, locks, q, events)))
}

// epochsAmong returns the epochs that began among the events of the query, the oldest first: at each event those before
// it, and last those after all. They are for a table. A key that may not see how the service is gets none.
func (c *eventsCommand) epochsAmong(ctx context.Context, p *program, locks *client.Client, q paddock.EventQuery, events pastEvents) [][]paddock.EarlierEpoch {
	var info paddock.ServiceInfo
	if isTable(c.Output) {
		var err error
		info, err = locks.ServiceInfo(ctx)
		if err != nil && !errors.Is(err, lock.ErrRoleMissing) && !errors.Is(err, lock.ErrNameNotAllowed) {
			p.log.Warn("new epochs among the events are not shown", "error", err)
		}
	}
	if events.olderCut {
		q.Since = time.Time{}
	}
	if events.newerCut {
		q.Until = events.all[len(events.all)-1].At
	}
	newestFirst := slices.Clone(events.all)
	slices.Reverse(newestFirst)
	begun := info.EpochsAmong(newestFirst, q.Since, q.Until)
	slices.Reverse(begun)
	for _, epochs := range begun {
		slices.Reverse(epochs)
	}
	return begun
}

// follow prints the events of the query, and then the later ones until ctx ends.
func (c *eventsCommand) follow(ctx context.Context, p *program, q paddock.EventQuery) error {
	if c.Until+c.Around != "" {
		return usagef("--follow prints the events that happen from now on, too; leave out --until and --around")
	}
	locks, err := c.clientWithTimeout(pollTime + attemptTimeout)
	if err != nil {
		return err
	}
	w := &watcher{program: p, locks: locks, out: p.stream(c.Output, eventColumns()...)}
	err = w.printNewest(ctx, q, c.limit())
	if answer := (*lock.Error)(nil); errors.As(err, &answer) && ctx.Err() != nil {
		return nil
	}
	return explain(err)
}

// printNewest prints the events of the query, the oldest first, and those that follow. An outage may last for the limit
// before the first answer.
func (w *watcher) printNewest(ctx context.Context, q paddock.EventQuery, limit time.Duration) error {
	later := paddock.EventQuery{Prefix: q.Prefix, Kinds: q.Kinds, Deadlock: q.Deadlock, Holder: q.Holder, Cursor: paddock.CursorNow}
	now, err := w.page(ctx, later, limit)
	if err != nil {
		return err
	}
	events, err := retry(ctx, w.log, limit, func(ctx context.Context) (pastEvents, error) { return newestEvents(ctx, w.program, w.locks, q) })
	if err != nil {
		return err
	}
	if err := w.out.begin(); err != nil {
		return err
	}
	events.warn(w.log, q)
	for _, e := range events.all {
		if err := w.printEvent(e); err != nil {
			return err
		}
	}
	later.Cursor = now.Next
	if n := len(events.all); n > 0 { // the last one may have happened after now
		later.Cursor = slices.MaxFunc([]string{now.Next, strconv.FormatInt(events.all[n-1].ID, 10)}, compareCursors)
	}
	return w.follow(ctx, later, noLimit)
}

// compareCursors compares cursors of lists in the order of the events.
func compareCursors(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// showEvents returns the output for events, one per row, and in a table for the epochs that began among them, see epochsAmong.
func showEvents(events []lock.Event, begun [][]paddock.EarlierEpoch) output {
	names := namesIn(events, func(e lock.Event) string { return e.Name })
	o := output{wire: wire.MapSlice(events, wire.EventOf), names: names, table: func(s *table) {
		s.head("AT", "ID", "KIND", "LOCK", "TOKEN", "HOLDER", "BY", "REASON")
		for i, epochs := range begun {
			for _, epoch := range epochs {
				s.row(local(epoch.BeganAt), none, "new epoch", none, none, none, none, fmt.Sprintf("epoch %d began: %s", epoch.Number, epoch.Reason))
			}
			if i < len(events) {
				e := events[i]
				s.row(local(e.At), strconv.FormatInt(e.ID, 10), e.Kind.String(), e.Name, token(e.Token), cmp.Or(e.Holder, none),
					cmp.Or(e.Caller.Name, none), cmp.Or(e.Explanation(), none))
			}
		}
	}}
	if len(slices.Concat(begun...)) == 0 {
		o.empty = "No events found."
	}
	return o
}
