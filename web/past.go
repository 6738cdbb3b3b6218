package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// pastEvents is how many events of a lock are read for its page.
	pastEvents = 100
	// maxShownEvents is how many of them are listed.
	maxShownEvents = 20
	// maxBars bounds the leases and waits of the timeline.
	maxBars = 20
	// minBar is the least width of a bar, in percent of the chart.
	minBar = 0.5
)

// A past is what the events of a lock say: its last leases and waits, and the events themselves.
type past struct {
	Bars   []bar   // the latest beginning first
	More   int     // bars that are not shown
	Events []event // the newest first
	From   time.Time
	To     time.Time
	Older  string // the URL of the page with older events; empty if there are none
	Newest string // the URL of the page with the newest events; empty if this is it
	Gap    bool   // older events are no longer kept
	// Unreadable are the rows of events that are left out.
	Unreadable []paddock.Unreadable
}

// An event is an event as the page shows it.
type event struct {
	lock.Event
	Why    string
	Circle *circle     // of a deadlock; nil: none
	With   *otherLocks // of its set; nil: none
	On     *namedLock  // its lock, on a page about several; nil: the page's
	// Epochs began between the event and the one above it, the newest first. An epoch without a number stands for those that
	// the reader may not see, or that are too old to be known.
	Epochs []paddock.EarlierEpoch
}

// HasHolder reports whether the event is about a lease or a waiter, not a freeze.
func (e event) HasHolder() bool { return e.Kind != lock.Frozen && e.Kind != lock.Thawed }

// shortlyAfter is how far the list of what happened around an event goes on after it. The list has the newest event first,
// and so begins near this one.
const shortlyAfter = 10 * time.Second

// AroundURL returns the URL of what happened around the event, to any lock.
func (e event) AroundURL() string {
	return address(eventsRoot, url.Values{"until": {e.At.Add(shortlyAfter).UTC().Format(time.RFC3339)}})
}

// A bar is a lease or a wait in the timeline.
type bar struct {
	Key    string
	Holder string
	Waits  bool       // a wait, otherwise a lease
	Token  lock.Token // of a lease
	Slot   int
	Slots  lock.Slots
	Mode   lock.Mode
	Begin  time.Time // zero: before the events that were read
	End    time.Time // zero: not yet, or after the events that were read
	How    string    // how it ended, or what it does now
	Reason string
	Circle *circle // of the deadlock that ended it; nil: none
	For    elapsed
	X, W   float64 // in percent of the chart
}

// Span returns how long the lease or the wait took, as far as the events say.
func (b bar) Span() string {
	if b.Begin.IsZero() {
		return "more than " + b.For.String()
	}
	return b.For.String()
}

// Left returns the begin of the bar as SVG takes it.
func (b bar) Left() string { return fmt.Sprintf("%.2f%%", b.X) }

// Width returns the width of the bar as SVG takes it.
func (b bar) Width() string { return fmt.Sprintf("%.2f%%", b.W) }

// pastOf reads the past of the lock at the location, as of when the lock was read.
func (u *ui) pastOf(ctx context.Context, here location, l lock.Lock) (past, error) {
	q := paddock.EventQuery{Names: []string{here.Lock}, Descending: true, Limit: pastEvents, Cursor: here.Past}
	page, err := u.locks.Events(ctx, q)
	if err != nil {
		return past{}, err
	}
	p := past{Gap: page.Gap, Unreadable: page.Unreadable}
	shown := page.Items[:min(len(page.Items), maxShownEvents)]
	for _, e := range shown {
		p.Events = append(p.Events, eventOf(e, here))
	}
	if here.Past != "" {
		p.Newest = here.at("").URL() + "#events"
		l = lock.Lock{}
		if len(page.Items) > 0 {
			l.AsOf = page.Items[0].At
		}
	}
	if n := len(shown); n > 0 && (n < len(page.Items) || page.Next != "") {
		p.Older, p.Gap = here.at(fmt.Sprint(shown[n-1].ID)).URL()+"#events", false
	}
	slices.Reverse(page.Items)
	p.draw(paddock.TimelineOf(page.Items), here, l)
	return p, nil
}

// eventOf returns the event. The words of a circle are beside its picture.
func eventOf(e lock.Event, here location) event {
	here.Lock = e.Name
	one := event{Event: e, Why: e.Explanation(), With: fewLocksOf(e.Set, here)}
	if one.Circle = circleOf(e.Cycle, here); one.Circle != nil {
		one.Why = e.Reason
	}
	return one
}

// draw makes the bars of the timeline. It ends with the last of them, or when the lock was read if one goes on.
func (p *past) draw(t paddock.Timeline, here location, l lock.Lock) {
	for _, h := range t.Holds {
		p.Bars = append(p.Bars, holdBar(h, l, p.Newest == ""))
	}
	for _, w := range t.Waits {
		p.Bars = append(p.Bars, waitBar(w, here, p.Newest == ""))
	}
	slices.Reverse(p.Bars)
	slices.SortStableFunc(p.Bars, func(a, b bar) int { return b.Begin.Compare(a.Begin) })
	p.More = max(len(p.Bars)-maxBars, 0)
	p.Bars = p.Bars[:len(p.Bars)-p.More]
	for _, b := range p.Bars {
		for _, at := range []time.Time{b.Begin, cmp.Or(b.End, l.AsOf)} {
			if !at.IsZero() && (p.From.IsZero() || at.Before(p.From)) {
				p.From = at
			}
			if at.After(p.To) {
				p.To = at
			}
		}
	}
	for i := range p.Bars {
		p.Bars[i].place(p.From, p.To)
	}
}

// place puts the bar into the chart between the instants.
func (b *bar) place(from, to time.Time) {
	begin, end := b.Begin, cmp.Or(b.End, to)
	if begin.IsZero() {
		begin = from
	}
	b.For = elapsed(end.Sub(begin))
	whole := max(to.Sub(from), time.Microsecond)
	b.W = min(max(100*float64(end.Sub(begin))/float64(whole), minBar), 100)
	b.X = min(100*float64(begin.Sub(from))/float64(whole), 100-b.W)
}

func holdBar(h lock.Hold, l lock.Lock, newest bool) bar {
	b := bar{
		Key: fmt.Sprintf("hold %d/%d/%d", h.Token, h.Slot, h.GrantedAt.UnixMicro()), Holder: h.Holder, Token: h.Token, Slot: h.Slot, Slots: h.Slots, Mode: h.Mode,
		Begin: h.GrantedAt, End: h.EndedAt, Reason: h.Explanation(),
	}
	b.How = howOf(h.End, string(stateOf(h, l)), newest)
	return b
}

// stateOf returns the state of a lease without an end: held, if the lock was read before it was granted.
func stateOf(h lock.Hold, l lock.Lock) lock.State {
	for _, i := range l.Leases {
		if i.Token == h.Token && i.Slot == h.Slot {
			return leaseState(i)
		}
	}
	return lock.Held
}

func waitBar(w paddock.Wait, here location, newest bool) bar {
	b := bar{
		Key: fmt.Sprintf("wait %d/%d", w.Place, w.JoinedAt.UnixMicro()), Holder: w.Holder, Waits: true, Mode: w.Mode,
		Begin: w.JoinedAt, End: w.LeftAt, Reason: w.Reason, Circle: circleOf(w.Cycle, here),
	}
	b.How = howOf(w.End, "waiting", newest)
	return b
}

// howOf returns how a lease or a wait has ended. One without an end goes on now, or after the events that were read.
func howOf(end lock.Kind, now string, newest bool) string {
	switch {
	case end != 0:
		return end.String()
	case newest:
		return now
	}
	return "later"
}
