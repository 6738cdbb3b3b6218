package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/when"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

type historyCommand struct {
	Name string `arg:"" complete:"lock" help:"The lock's name, such as jobs:nightly."`
	serviceFlags
	retryFlags
	outputFlags

	At string `placeholder:"WHEN" help:"Show who held the lock at this instant instead."`
	pastFlags
}

// The pastFlags select events of the past.
type pastFlags struct {
	Since    string   `placeholder:"WHEN" unset:"the oldest event that is kept" help:"Only events at this instant or later."`
	Until    string   `placeholder:"WHEN" unset:"now" help:"Only events before this instant."`
	Around   string   `placeholder:"WHEN" unset:"all events" help:"Only events of the five minutes before this instant and of the five after it."`
	Kind     []string `placeholder:"KIND" complete:"kind" unset:"all kinds" help:"Only events of these kinds, with commas between them."`
	Deadlock bool     `help:"Only waiters that were removed from a queue to break a deadlock, with its circle."`
	Holder   string   `placeholder:"NAME" unset:"all holders" help:"Only events of this holder."`
	Limit    int      `default:"20" placeholder:"N" help:"How many events to show: the newest ones; with --around, the nearest to it."`
}

func (historyCommand) Help() string {
	return `Prints the last events of a lock, oldest first: who was granted it and for how long, who waited, whose lease expired or was
revoked. BY is the API key whose call did it: its name, or its id if your key may not see the name. With --at it prints who
held the lock at an instant.

WHEN is an instant such as 2026-01-02T03:12:00Z, a time of the last 24 hours on this machine's clock such as 03:12, or how
long ago it was, such as 2h.

    paddock history jobs:nightly
    paddock history jobs:nightly --at 03:12
    paddock history jobs:nightly --since 7d --kind expired,revoked --limit 1000`
}

// Run prints the history of a lock.
func (c *historyCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	if c.At != "" {
		return c.printHolds(ctx, p, locks)
	}
	q, err := c.query(paddock.EventQuery{Names: []string{c.Name}}, time.Now())
	if err != nil {
		return err
	}
	events, err := read(ctx, p, c.retryFlags, func(ctx context.Context) (pastEvents, error) { return c.events(ctx, p, locks, q) })
	if err != nil {
		return err
	}
	events.warn(p.log, q, "lock", c.Name)
	return p.print(c.Output, showHistory(events.all))
}

// printHolds prints who held the lock at an instant.
func (c *historyCommand) printHolds(ctx context.Context, p *program, locks *client.Client) error {
	if c.Since+c.Until+c.Around+c.Holder != "" || len(c.Kind) > 0 || c.Deadlock {
		return usagef("--at cannot be combined with flags that select events; leave them out")
	}
	at, err := parseInstant("at", c.At, time.Now())
	if err != nil {
		return err
	}
	list, err := read(ctx, p, c.retryFlags, func(ctx context.Context) (paddock.HoldList, error) {
		return locks.Holds(ctx, paddock.HoldQuery{Name: c.Name, At: at, Limit: paddock.MaxLimit})
	})
	if err != nil {
		return err
	}
	if !list.Complete {
		p.log.Warn("leases may be missing: not all events from before are kept", "lock", c.Name, "at", at)
	}
	return p.print(c.Output, showHolds(list))
}

// query returns q for the newest of the selected events, or a usage error.
func (c pastFlags) query(q paddock.EventQuery, now time.Time) (paddock.EventQuery, error) {
	q.Holder, q.Deadlock, q.Descending, q.Limit = c.Holder, c.Deadlock, true, c.Limit
	if c.Limit < 1 || c.Limit > paddock.MaxLimit {
		return q, usagef("--limit is %d; give 1 to %d", c.Limit, paddock.MaxLimit)
	}
	for _, name := range c.Kind {
		kind := lock.KindOf(name)
		if kind == 0 {
			return q, usagef("--kind: %q is no kind of event; give %s", name, lock.KindNames())
		}
		q.Kinds = append(q.Kinds, kind)
	}
	var err error
	if c.Around != "" {
		if c.Since+c.Until != "" {
			return q, usagef("--around cannot be combined with --since or --until; leave one of them out")
		}
		at, err := parseInstant("around", c.Around, now)
		q.Since, q.Until = when.Around(at)
		return q, err
	}
	if q.Since, err = parseInstant("since", c.Since, now); err != nil {
		return q, err
	}
	if q.Until, err = parseInstant("until", c.Until, now); err != nil {
		return q, err
	}
	_, err = q.Resolve()
	return q, explain(err)
}

// parseInstant reads an instant, see when.Instant. Without a text it returns the zero instant.
func parseInstant(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := when.Instant(text, now)
	if err != nil {
		return at, usagef("--%s: %v", flag, err)
	}
	return at, nil
}

// The pastEvents are events in the order of their ids.
type pastEvents struct {
	all []lock.Event
	gap bool // older ones are no longer kept
	// There are older or newer ones than the query's limit allows.
	olderCut, newerCut bool
}

// warn logs that events of the time that the query asks for are missing. The args are those of the log.
func (e pastEvents) warn(log *slog.Logger, q paddock.EventQuery, args ...any) {
	if e.gap {
		log.Warn("older events are no longer kept", args...)
	}
	if e.newerCut || e.olderCut && !q.Since.IsZero() {
		log.Warn("not all events of that time are shown; give a greater --limit, or a shorter time by --since and --until", args...)
	}
}

// events returns the last events that the query selects; with --around, those nearest to the instant.
func (c pastFlags) events(ctx context.Context, p *program, locks paddock.Service, q paddock.EventQuery) (pastEvents, error) {
	if c.Around == "" {
		return newestEvents(ctx, p, locks, q)
	}
	at := q.Since.Add(q.Until.Sub(q.Since) / 2)
	before, after := q, q
	before.Until, after.Since, after.Descending = at, at, false
	found, err := readEvents(ctx, p, locks, before, q.Limit+1)
	if err != nil {
		return found, err
	}
	later, err := readEvents(ctx, p, locks, after, q.Limit+1)
	if err != nil {
		return found, err
	}
	some := min(len(found.all), max(q.Limit/2, q.Limit-len(later.all)))
	rest := min(len(later.all), q.Limit-some)
	found.olderCut, found.newerCut = some < len(found.all), rest < len(later.all)
	found.all = found.all[:some]
	slices.Reverse(found.all)
	found.all = append(found.all, later.all[:rest]...)
	return found, nil
}

// newestEvents returns the last events that the query selects.
func newestEvents(ctx context.Context, p *program, locks paddock.Service, q paddock.EventQuery) (pastEvents, error) {
	wanted := q.Limit
	if !q.Since.IsZero() {
		wanted++ // is there another one in the range?
	}
	found, err := readEvents(ctx, p, locks, q, wanted)
	if len(found.all) > q.Limit {
		found.all, found.olderCut = found.all[:q.Limit], true
	}
	slices.Reverse(found.all)
	return found, err
}

// readEvents returns as many events as wanted, if there are so many, in the order of the query.
func readEvents(ctx context.Context, p *program, locks paddock.Service, q paddock.EventQuery, wanted int) (found pastEvents, err error) {
	for len(found.all) < wanted {
		q.Limit = min(wanted-len(found.all), paddock.MaxLimit)
		page, err := locks.Events(ctx, q)
		if err != nil {
			return found, err
		}
		warnUnreadable(p.log, page.Unreadable)
		found.all = append(found.all, page.Items...)
		if page.Next == "" || !q.Descending && len(page.Items) < q.Limit && page.SearchedTo.IsZero() { // later events may happen yet
			found.gap, found.olderCut = page.Gap, false
			break
		}
		q.Cursor, found.olderCut = page.Next, q.Descending
	}
	return found, nil
}

// showHistory returns the output for the events of a lock, one per row, with what the events before it say about each.
func showHistory(events []lock.Event) output {
	ids := namesIn(events, func(e lock.Event) string { return strconv.FormatInt(e.ID, 10) })
	return output{wire: wire.MapSlice(events, wire.EventOf), names: ids, empty: "No events found.", table: func(s *table) {
		s.head("AT", "EVENT", "TOKEN", "MODE", "HOLDER", "BY", "DETAILS")
		for i, e := range events {
			s.row(localPrecise(e.At), e.Kind.String(), token(e.Token), modeAndSlot(e.Mode, e.Slot, e.Slots), e.Holder, cmp.Or(e.Caller.Name, none),
				cmp.Or(details(events[:i+1]), none))
		}
	}}
}

// details returns what the events say about the last one of them: how long its lease was held or its call waited, why it
// ended, and what it belonged to.
func details(events []lock.Event) string {
	e := events[len(events)-1]
	timeline := paddock.TimelineOf(events)
	text := ""
	for _, w := range timeline.Waits {
		if w.LeftAt.Equal(e.At) && w.Place == e.Place && !w.JoinedAt.IsZero() {
			text = "waited " + short(e.At.Sub(w.JoinedAt))
		}
	}
	for _, h := range timeline.Holds {
		if h.EndedAt.Equal(e.At) && h.Slot == e.Slot && h.Token == e.Token && h.End == e.Kind && !h.GrantedAt.IsZero() {
			text = "held for " + short(e.At.Sub(h.GrantedAt))
		}
	}
	if e.Explanation() != "" && text != "" {
		text += ": "
	}
	if text += e.Explanation(); e.Circumstances() != "" && text != "" {
		text += "; "
	}
	return text + e.Circumstances()
}

// showHolds returns the output for the leases of a lock, one per row.
func showHolds(list paddock.HoldList) output {
	holders := namesIn(list.Holds, func(h lock.Hold) string { return h.Holder })
	return output{wire: wire.HoldListOf(list), names: holders, empty: "No lease was held at that instant.", table: func(s *table) {
		s.head("HOLDER", "MODE", "TOKEN", "FROM", "TO", "END", "REASON")
		for _, h := range list.Holds {
			end := none
			if h.End != 0 {
				end = fmt.Sprintf("%s after %s", h.End, heldFor(h))
			}
			s.row(h.Holder, modeAndSlot(h.Mode, h.Slot, h.Slots), token(h.Token), localPrecise(h.GrantedAt), localPrecise(h.EndedAt),
				end, cmp.Or(h.Explanation(), none))
		}
	}}
}

// heldFor returns how long an ended lease was held, or that this is unknown.
func heldFor(h lock.Hold) string {
	if h.GrantedAt.IsZero() {
		return "an unknown time"
	}
	return short(h.EndedAt.Sub(h.GrantedAt))
}

// localPrecise returns an instant in the local time zone, in milliseconds.
func localPrecise(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format("2006-01-02T15:04:05.000Z07:00")
}
