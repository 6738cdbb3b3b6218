package cell

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

// glance is how long a call that waits lets all cells answer with what they have, before it waits for the first of
// them. With a wait, a cell answers from what it has in memory.
const glance = time.Millisecond

// Events returns a page of events, see paddock.Service. The history of one lock is in the cell of its group. Other
// pages are merged by time, in each cell's own order.
func (r *Router) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	if len(q.Names) == 1 && !q.FollowsSeveral() {
		end, given := time.Now().Add(q.Wait), q.Cursor
		return at(ctx, r, placement.Group(q.Names[0]), func(m *member, s paddock.Service) (paddock.Page[lock.Event], error) {
			q.Cursor = r.view().cursorAt(m, given)
			if q.Wait > 0 {
				q.Wait = max(time.Until(end), time.Millisecond).Round(time.Millisecond)
			}
			return s.Events(ctx, q)
		})
	}
	q, err := q.Resolve()
	if err != nil {
		return paddock.Page[lock.Event]{}, err
	}
	m, err := r.mergeOf(ctx, q)
	if err != nil {
		return paddock.Page[lock.Event]{}, err
	}
	page, err := m.read(ctx, min(q.Wait, glance))
	if q.Wait > glance && err == nil && isEmpty(page) {
		return m.read(ctx, q.Wait-glance)
	}
	return page, err
}

// cursorAt returns the cursor for one lock in the cell: a cursor of several cells goes on where it is in that cell.
func (v view) cursorAt(m *member, given string) string {
	if c, err := paddock.ParseMark(given); err == nil && c.OfCells() {
		given, _ = placeIn(c, bits.TrailingZeros64(uint64(v.bit(m))), "")
	}
	return given
}

// placeIn returns the cursor for the cell at the position, in a list that is at the mark and has begun at begin. over
// reports that the list of the cell has ended.
func placeIn(m paddock.Mark, position int, begin string) (cursor string, over bool) {
	switch id, found := m.In(position); {
	case found && id == paddock.MarkOver:
		return "", true
	case found && id == paddock.MarkNow, !found && begin == paddock.CursorNow:
		return paddock.CursorNow, false
	case found:
		return strconv.FormatInt(id, 10), false
	}
	return "", false
}

// isEmpty reports whether a call that waits goes on after the page.
func isEmpty(p paddock.Page[lock.Event]) bool {
	return len(p.Items)+len(p.EndedSessions)+len(p.Unreadable) == 0 && !p.Gap
}

// A merging reads pages of events of several cells as one.
type merging struct {
	*Router
	q        paddock.EventQuery
	at       paddock.Mark
	parts    []part                        // one of each cell that is known
	sessions map[*member][]lock.SessionRef // those of the query that the cell uses
}

func (r *Router) mergeOf(ctx context.Context, q paddock.EventQuery) (*merging, error) {
	at, err := paddock.ParseMark(q.Cursor)
	if err != nil {
		return nil, err
	}
	if !at.OfCells() && at.String() != "0" {
		return nil, lock.Invalid("cursor", "is the place of an event in one cell, and the list has those of several; pass next_cursor, or the id of a stream, unchanged")
	}
	m := &merging{Router: r, q: q, at: at, sessions: map[*member][]lock.SessionRef{}}
	for _, c := range r.newest().Cells {
		if o := r.byName[c.Name]; o != nil {
			m.parts = append(m.parts, part{reply: reply[paddock.Page[lock.Event]]{from: o}, position: c.Position})
		}
	}
	if len(m.parts) == 0 {
		_, err := r.of("")
		return nil, err
	}
	for _, ref := range q.Sessions {
		if err := m.follow(ctx, ref); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// follow adds the session to those of the cells that use it, or that register it. One that no cell knows has ended: its
// home says so.
func (m *merging) follow(ctx context.Context, ref lock.SessionRef) error {
	cells, err := m.view().in(m.Router.sessions.of(ref))
	if err != nil {
		return err
	}
	if len(cells) == 0 {
		infos, err := m.infos(ctx, ref)
		if err != nil && !isUnknownSession(err) {
			return err
		}
		if cells = membersOf(infos); len(cells) == 0 {
			cells = []*member{m.view().home(ref)}
		}
	}
	for _, c := range cells {
		m.sessions[c] = append(m.sessions[c], ref)
	}
	return nil
}

// unused are names of locks that no client uses: as long as a name can be.
var unused = []string{strings.Repeat("0", lock.MaxNameLength), strings.Repeat("1", lock.MaxNameLength)}

// queryAt returns the query as the cell of the part is asked it. A query with several names or sessions stays one: a
// cell that has nothing of it says how far its events go.
func (m *merging) queryAt(p *part, wait time.Duration) (q paddock.EventQuery, over bool) {
	q = m.q
	q.Wait, q.Sessions = wait, m.sessions[p.from]
	if m.q.FollowsSeveral() && len(q.Names) < 2 && len(q.Sessions) == 0 {
		q.Names = append(slices.Clone(unused[len(q.Names):]), q.Names...)
	}
	q.Cursor, over = placeIn(m.at, p.position, m.q.Cursor)
	return q, over
}

// A part is what one cell has answered.
type part struct {
	reply[paddock.Page[lock.Event]]
	position int
	began    string // the cursor that it was asked with
	over     bool   // its list had ended, so it was not asked
	silent   bool   // it was not waited for
	taken    int    // how many of its events are in the merged page
}

// read returns the page at the cursor. If wait is more than a glance, it returns with the first cell that has
// something. Of a cell that is away the page has nothing; what it says then depends on whether the caller would come
// back at once.
func (m *merging) read(ctx context.Context, wait time.Duration) (page paddock.Page[lock.Event], err error) {
	m.ask(ctx, wait)
	alone := true // all cells are away
	for i := range m.parts {
		switch p := &m.parts[i]; {
		case p.over:
		case p.silent:
			alone = false
		case p.err == nil:
			alone = false
			page.EndedSessions = append(page.EndedSessions, p.of.EndedSessions...)
			page.Unreadable = append(page.Unreadable, p.of.Unreadable...)
		case !isAway(p.err):
			return page, p.err
		default:
			err = p.err
			if m.q.Wait == 0 {
				page.Unreadable = append(page.Unreadable, missing(p.from, p.err))
			}
		}
	}
	if alone && err != nil {
		return page, err
	}
	slices.Sort(page.EndedSessions)
	page.EndedSessions = slices.Compact(page.EndedSessions)
	m.merge(&page)
	goesOn := false
	m.at = paddock.Mark{}
	for i := range m.parts {
		p := &m.parts[i]
		page.Gap = page.Gap || p.of.Gap && (p.taken > 0 || len(p.of.Items) == 0)
		if to := p.of.SearchedTo; !to.IsZero() && (page.SearchedTo.IsZero() || to.After(page.SearchedTo) == m.q.Descending) {
			page.SearchedTo = to
		}
		id, begun, err := p.place()
		if err != nil {
			return page, err
		}
		if begun {
			m.at = m.at.With(p.position, id)
		}
		goesOn = goesOn || !begun || id != paddock.MarkOver
	}
	if goesOn {
		page.Next = m.at.String()
	}
	if len(page.Items) == m.q.Limit {
		page.SearchedTo = time.Time{}
	}
	return page, nil
}

// place returns where the list goes on in the cell; begun is false if that is at its beginning.
func (p *part) place() (id int64, begun bool, err error) {
	cursor, answered := p.began, p.err == nil && !p.silent && p.taken == len(p.of.Items)
	switch {
	case p.over || answered && p.of.Next == "":
		return paddock.MarkOver, true, nil
	case answered:
		cursor = p.of.Next
	case p.taken > 0:
		return p.of.Items[p.taken-1].ID, true, nil
	}
	switch cursor {
	case "":
		return 0, false, nil
	case paddock.CursorNow:
		return paddock.MarkNow, true, nil
	}
	id, err = strconv.ParseInt(cursor, 10, 64)
	return id, true, err
}

// merge adds the events of the parts to the page, by time, as many as the query's limit.
func (m *merging) merge(page *paddock.Page[lock.Event]) {
	for len(page.Items) < m.q.Limit {
		var first *part
		for i := range m.parts {
			p := &m.parts[i]
			if p.taken < len(p.of.Items) && (first == nil || m.before(p.of.Items[p.taken], first.of.Items[first.taken])) {
				first = p
			}
		}
		if first == nil {
			return
		}
		e := first.of.Items[first.taken]
		e.Cell = first.position
		page.Items = append(page.Items, e)
		first.taken++
	}
}

// before reports whether the event a is before b in the order of the list.
func (m *merging) before(a, b lock.Event) bool {
	if m.q.Descending {
		a, b = b, a
	}
	return a.At.Before(b.At)
}

// ask asks all cells whose lists go on, and sets what they answer. If wait is more than a glance, the first one that
// has something ends the wait of the others, and so does a cell that is away, after a while: it may be back then.
func (m *merging) ask(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan int, len(m.parts))
	waiting := 0
	for i := range m.parts {
		p := &m.parts[i]
		q, over := m.queryAt(p, wait)
		*p = part{reply: reply[paddock.Page[lock.Event]]{from: p.from}, position: p.position, began: q.Cursor, over: over}
		if over {
			continue
		}
		waiting++
		go func() {
			p.reply = askBounded(ctx, p.from, wait, func(ctx context.Context, s paddock.Service) (paddock.Page[lock.Event], error) {
				return s.Events(ctx, q)
			})
			answers <- i
		}()
	}
	until := time.NewTimer(wait + awayTimeout + time.Second)
	defer until.Stop()
	for enough := false; waiting > 0; {
		select {
		case i := <-answers:
			waiting--
			p := &m.parts[i]
			p.silent = p.err != nil && enough
			if p.err != nil && !enough {
				until.Reset(retryAfter)
			}
			enough = enough || wait > glance && p.err == nil && !isEmpty(p.of)
		case <-until.C:
			enough = true
		}
		if enough {
			cancel()
		}
	}
}
