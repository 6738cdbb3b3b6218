package memlock

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func (r replica) Lock(ctx context.Context, name string) (lock.Lock, error) {
	if err := cmp.Or(lock.CheckName(name), contextError(ctx)); err != nil {
		return lock.Lock{}, err
	}
	l, _ := r.lockAndNews(name)
	return l, nil
}

// lockAndNews returns the lock and a channel that is closed at the next event.
func (m *Memory) lockAndNews(name string) (lock.Lock, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.state(name).Lock(m.clock.now())
	l.AddPolicy(m.policy())
	for _, above := range m.trees.Path(name) {
		l.AddAbove(m.state(above).Lock(l.AsOf))
	}
	return l, m.news
}

func (r replica) Watch(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
	w, err := w.Resolve()
	if err := cmp.Or(err, contextError(ctx)); err != nil {
		return lock.Lock{}, err
	}
	end := time.Now().Add(w.Wait)
	for {
		l, news := r.lockAndNews(w.Name)
		if l.Version() != w.Seen || !time.Now().Before(end) {
			return l, nil
		}
		next := end
		if changes := l.NextChangeAt(); !changes.IsZero() {
			if at := time.Now().Add(r.clock.until(changes)); at.Before(end) {
				next = at
			}
		}
		if err := waitFor(ctx, news, next); err != nil {
			return lock.Lock{}, err
		}
	}
}

func (r replica) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	if err := cmp.Or(lock.CheckName(name), contextError(ctx)); err != nil {
		return lock.QueueInfo{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.now()
	locks := []lock.Record{r.state(name)}
	for _, other := range slices.Sorted(maps.Keys(r.locks)) {
		if other != name {
			locks = append(locks, r.state(other))
		}
	}
	q := r.state(name).QueueInfo(lock.View{Now: now, Self: r.self, Locks: locks[1:], Policy: r.policy()})
	q.Chain = lock.WaitChainOf(locks, now, r.self, true)
	return q, nil
}

func (r replica) Locks(ctx context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	var page paddock.Page[lock.Lock]
	q, err := q.Resolve()
	if err := cmp.Or(err, contextError(ctx)); err != nil {
		return page, err
	}
	after, err := q.After()
	if err != nil {
		return page, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.locks {
		s := r.state(name)
		l := s.Lock(r.clock.now())
		l.AddPolicy(r.policy())
		if s.Name > after && q.Selects(l) {
			page.Items = append(page.Items, l)
		}
	}
	all := len(page.Items)
	if page.Items = q.Top(page.Items); all > q.Limit && q.Sort == paddock.ByName {
		page.Next = paddock.LockCursor(page.Items[q.Limit-1].Name)
	}
	return page, nil
}

func (r replica) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	q, err := q.Resolve()
	if err := cmp.Or(err, contextError(ctx)); err != nil {
		return paddock.Page[lock.Event]{}, err
	}
	end := time.Now().Add(q.Wait)
	for {
		page, news, err := r.page(q)
		if err != nil || len(page.Items)+len(page.EndedSessions) > 0 || !time.Now().Before(end) {
			return page, err
		}
		if err := waitFor(ctx, news, end); err != nil {
			return paddock.Page[lock.Event]{}, err
		}
		q.Cursor = page.Next
	}
}

// eventsFrom returns the events after the cursor in the order of a page.
func (m *Memory) eventsFrom(cursor int64, descending bool) []lock.Event {
	i, found := slices.BinarySearchFunc(m.events, cursor, func(e lock.Event, id int64) int { return cmp.Compare(e.ID, id) })
	if descending {
		before := slices.Clone(m.events[:i])
		slices.Reverse(before)
		return before
	}
	if found {
		i++
	}
	return m.events[i:]
}

// page returns the current page and a channel that is closed at the next event.
func (m *Memory) page(q paddock.EventQuery) (paddock.Page[lock.Event], <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var page paddock.Page[lock.Event]
	newest := int64(0)
	if n := len(m.events); n > 0 {
		newest = m.events[n-1].ID
	}
	at, err := strconv.ParseInt(cmp.Or(q.Cursor, "0"), 10, 64)
	switch {
	case q.Cursor == paddock.CursorNow:
		at, err = newest, nil
	case q.Descending && q.Cursor == "":
		at = newest + 1
	}
	if err != nil || at < 0 || at > newest+m.ids.step {
		return page, nil, lock.Invalid("cursor", "is invalid; pass next_cursor unchanged, or omit it to start over")
	}
	for _, ref := range q.Sessions {
		if s := m.session(ref); s == nil || s.Ended != 0 {
			page.EndedSessions = append(page.EndedSessions, ref)
		}
	}
	for _, e := range m.eventsFrom(at, q.Descending) {
		if len(page.Items) == q.Limit {
			break
		}
		if at = e.ID; q.Selects(&e) {
			page.Items = append(page.Items, e)
		}
	}
	closed := q.Descending || !q.Until.IsZero() && !m.clock.now().Before(q.Until)
	if !closed || len(page.Items) == q.Limit {
		page.Next = strconv.FormatInt(at, 10)
	}
	return page, m.news, nil
}
