package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/sessions"
)

// OpenSession opens a session, see paddock.Service.
func (s *Store) OpenSession(ctx context.Context, o lock.OpenSession) (g lock.SessionGrant, err error) {
	defer func() { s.db.Observer.Call(observe.Call{Op: observe.OpenSession, Replayed: g.Replayed, Err: err}) }()
	if o, err = o.Resolve(s.bounds); err != nil {
		return lock.SessionGrant{}, err
	}
	if o.ID == (lock.SessionID{}) {
		o.ID = lock.SessionID(uuid.New())
	}
	return sessionGranted(s.changeSession(ctx, o))
}

// RenewSession extends a session, see paddock.Service.
func (s *Store) RenewSession(ctx context.Context, r lock.RenewSession) (g lock.SessionGrant, err error) {
	defer func() { s.db.Observer.Call(observe.Call{Op: observe.RenewSession, Err: err}) }()
	if r, err = r.Resolve(s.bounds); err != nil {
		return lock.SessionGrant{}, err
	}
	return sessionGranted(s.changeSession(ctx, r))
}

// sessionGranted returns the answer about a session.
func sessionGranted(c sessions.Changed, err error) (lock.SessionGrant, error) {
	if err != nil {
		return lock.SessionGrant{}, err
	}
	return lock.SessionGrant{Session: c.Session, Until: c.Until(), Replayed: !c.Opened}, nil
}

// CloseSession ends a session and what it has, see paddock.Service.
func (s *Store) CloseSession(ctx context.Context, c lock.CloseSession) (err error) {
	defer func() { s.db.Observer.Call(observe.Call{Op: observe.CloseSession, Err: err}) }()
	if c, err = c.Resolve(); err != nil {
		return err
	}
	c.By = lock.CallerFrom(ctx)
	out, err := s.changeSession(ctx, c)
	if err != nil {
		return err
	}
	return s.endSession(ctx, out.Session)
}

// endSession ends what a session has that is marked as ended. An error does not undo the mark, so the caller must not
// take the call for one without an effect; the leases that are left are ended in the background.
func (s *Store) endSession(ctx context.Context, of lock.Session) error {
	if err := s.sessions.End(ctx, of); err != nil {
		return database.UnknownOutcome(err)
	}
	return nil
}

// RevokeSession ends a session on behalf of an operator, see paddock.Service.
func (s *Store) RevokeSession(ctx context.Context, r lock.RevokeSession) (info lock.SessionInfo, err error) {
	defer func() { s.db.Observer.Call(observe.Call{Op: observe.RevokeSession, Err: err}) }()
	if r, err = r.Resolve(); err != nil {
		return lock.SessionInfo{}, err
	}
	r.By = lock.CallerFrom(ctx)
	out, err := s.changeSession(ctx, r)
	if err == nil {
		err = s.endSession(ctx, out.Session)
	}
	if err != nil {
		return lock.SessionInfo{}, err
	}
	return s.Session(ctx, r.Ref)
}

// changeSession changes a session. Those whose rows are locked have one turn together, so that they delay no other
// heartbeat.
func (s *Store) changeSession(ctx context.Context, c lock.SessionChange) (sessions.Changed, error) {
	tx := transaction[lock.SessionChange, sessions.Changed]{
		turns: []chan struct{}{s.writers}, read: s.db.First, attempt: s.sessions.Change,
	}
	if s.sessions.IsLocked(c.Session()) {
		tx.turns = []chan struct{}{s.aside, s.writers}
	}
	return transact(ctx, s, c, tx)
}

// Session returns a session, see paddock.Service.
func (s *Store) Session(ctx context.Context, ref lock.SessionRef) (info lock.SessionInfo, err error) {
	found := false
	err = s.db.Read(ctx, func(ctx context.Context) (err error) {
		info, found, err = s.sessions.Info(ctx, ref)
		return err
	})
	if err == nil && !found {
		err = lock.UnknownSession()
	}
	return info, err
}

// Sessions returns a page of sessions, see paddock.Service.
func (s *Store) Sessions(ctx context.Context, q paddock.SessionQuery) (page paddock.Page[lock.SessionInfo], err error) {
	if q, err = q.Resolve(); err == nil {
		_, err = q.After()
	}
	if err != nil {
		return page, err
	}
	err = s.db.Read(ctx, func(ctx context.Context) (err error) {
		page, err = s.sessions.Page(ctx, q)
		return err
	})
	return page, err
}
