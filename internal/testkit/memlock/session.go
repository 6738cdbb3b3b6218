package memlock

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// sweeper is the replica that ends the leases of sessions. No call waits there.
const sweeper lock.Replica = 0

// session returns the session, nil if there is none.
func (m *Memory) session(ref lock.SessionRef) *lock.Session {
	if s, ok := m.sessions[ref]; ok {
		return &s
	}
	return nil
}

// expireSessions records the end of the sessions that are over.
func (m *Memory) expireSessions() {
	for ref, s := range m.sessions {
		if after, expired := s.Expire(m.clock.now()); expired {
			m.sessions[ref] = after
			m.announce()
		}
	}
}

// change applies c, unless ctx has ended.
func (r replica) change(ctx context.Context, c lock.SessionChange) (g lock.SessionGrant, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := contextError(ctx); err != nil {
		return g, err
	}
	r.expireSessions()
	began, now, before := time.Now(), r.clock.now(), r.session(c.Session())
	after, changed, err := c.Change(before, now)
	if err != nil {
		return g, err
	}
	if changed {
		r.sessions[c.Session()] = after
		r.endSessionAt(after)
		if after.Ended != 0 {
			r.announce()
		}
	}
	return lock.SessionGrant{Session: after, Until: began.Add(after.ExpiresAt.Sub(now)), Replayed: before != nil}, nil
}

// endSessionAt replaces the timer that ends the session.
func (m *Memory) endSessionAt(s lock.Session) {
	ref := s.ID.Ref()
	if t, ok := m.sessionAlarms[ref]; ok {
		t.Stop()
	}
	m.sessionAlarms[ref] = time.AfterFunc(m.clock.until(s.EndsAt()), func() { m.sessionDue(ref) })
}

// sessionDue ends what the session has, if it is over.
func (m *Memory) sessionDue(ref lock.SessionRef) {
	m.mu.Lock()
	m.expireSessions()
	s := m.sessions[ref]
	if s.Ended == 0 {
		m.endSessionAt(s)
	}
	m.mu.Unlock()
	if s.Ended != 0 {
		m.endAll(s)
	}
}

// endAll ends the leases and places of a session that has ended.
func (m *Memory) endAll(s lock.Session) {
	for _, l := range m.locksOf(s.ID.Ref()) {
		var end lock.Command = lock.EndSession{Name: l.Name, Ref: s.ID.Ref(), How: s.Ended, Reason: s.Reason, By: s.EndedBy, SkipGrace: s.SkipGrace}
		for end != nil {
			d, err := (replica{m, sweeper}).decide(context.Background(), end)
			if err != nil {
				panic(err) // it is never refused
			}
			end = d.FollowUp
		}
	}
}

// locksOf returns the leases and places of the session.
func (m *Memory) locksOf(ref lock.SessionRef) (all []lock.SessionLock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.locks {
		all = append(all, r.OfSession(ref)...)
	}
	slices.SortFunc(all, lock.SessionLock.Compare)
	return all
}

func (r replica) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	o, err := o.Resolve(r.bounds)
	if err != nil {
		return lock.SessionGrant{}, err
	}
	if o.ID == (lock.SessionID{}) {
		o.ID = lock.SessionID(uuid.New())
	}
	return r.change(ctx, o)
}

func (r replica) RenewSession(ctx context.Context, c lock.RenewSession) (lock.SessionGrant, error) {
	c, err := c.Resolve(r.bounds)
	if err != nil {
		return lock.SessionGrant{}, err
	}
	return r.change(ctx, c)
}

func (r replica) CloseSession(ctx context.Context, c lock.CloseSession) error {
	c, err := c.Resolve()
	if err != nil {
		return err
	}
	c.By = lock.CallerFrom(ctx)
	g, err := r.change(ctx, c)
	if err == nil {
		r.endAll(g.Session)
	}
	return err
}

func (r replica) RevokeSession(ctx context.Context, c lock.RevokeSession) (lock.SessionInfo, error) {
	c, err := c.Resolve()
	if err != nil {
		return lock.SessionInfo{}, err
	}
	c.By = lock.CallerFrom(ctx)
	g, err := r.change(ctx, c)
	if err != nil {
		return lock.SessionInfo{}, err
	}
	r.endAll(g.Session)
	return r.Session(ctx, c.Ref)
}

func (r replica) Session(ctx context.Context, ref lock.SessionRef) (lock.SessionInfo, error) {
	if err := contextError(ctx); err != nil {
		return lock.SessionInfo{}, err
	}
	locks := r.locksOf(ref)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.session(ref)
	if s == nil {
		return lock.SessionInfo{}, lock.UnknownSession()
	}
	info := s.Info(r.clock.now())
	info.Leases, info.Places = lock.CountSessionLocks(locks)
	info.Locks = locks[:min(len(locks), lock.MaxSessionLocks)]
	return info, nil
}

func (r replica) Sessions(ctx context.Context, q paddock.SessionQuery) (paddock.Page[lock.SessionInfo], error) {
	var page paddock.Page[lock.SessionInfo]
	q, err := q.Resolve()
	if err := cmp.Or(err, contextError(ctx)); err != nil {
		return page, err
	}
	after, err := q.After()
	if err != nil {
		return page, err
	}
	r.mu.Lock()
	for ref, s := range r.sessions {
		if info := s.Info(r.clock.now()); ref > after && info.Ended == 0 && (q.Holder == "" || q.Holder == s.Holder) {
			page.Items = append(page.Items, info)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(page.Items, func(a, b lock.SessionInfo) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	if len(page.Items) > q.Limit {
		page.Items = page.Items[:q.Limit]
		page.Next = page.Items[q.Limit-1].Ref.String()
	}
	for i := range page.Items {
		page.Items[i].Leases, page.Items[i].Places = lock.CountSessionLocks(r.locksOf(page.Items[i].Ref))
	}
	return page, nil
}
