package server_test

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	sessionID   = "7c1b7e5a-3d0f-4a55-9d27-6d0a2b1c9e44"
	sessionName = "7bb9f2a32ab6969f" // of sessionID
	oneSession  = `{"session_id": "` + sessionID + `"}`
	sessionPath = "/v1/sessions/" + sessionName
)

// fakeSessions are the funcs of a fake that are about sessions.
type fakeSessions struct {
	open   func(lock.OpenSession) (lock.SessionGrant, error)
	renew  func(lock.RenewSession) (lock.SessionGrant, error)
	close  func(lock.CloseSession) error
	revoke func(lock.RevokeSession) (lock.SessionInfo, error)
	one    func(lock.SessionRef) (lock.SessionInfo, error)
	list   func(lock.SessionQuery) (lock.Page[lock.SessionInfo], error)
}

func sessionOf(o lock.OpenSession) lock.SessionGrant {
	return lock.SessionGrant{Until: time.Now().Add(o.TTL), Leases: 2, Places: 1, Session: lock.Session{
		ID: o.ID, Holder: o.Holder, TTL: o.TTL, Grace: o.Grace, Metadata: o.Metadata, OpenedAt: instant, ExpiresAt: instant.Add(o.TTL),
	}}
}

func (f *fake) OpenSession(_ context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	o, err := o.Resolve(bounds())
	if err != nil || f.sessions.open == nil {
		return sessionOf(o), err
	}
	return f.sessions.open(o)
}

func (f *fake) RenewSession(_ context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	r, err := r.Resolve(bounds())
	if err != nil || f.sessions.renew == nil {
		return sessionOf(lock.OpenSession{ID: r.ID, Holder: "h", TTL: time.Minute}), err
	}
	return f.sessions.renew(r)
}

func (f *fake) CloseSession(_ context.Context, c lock.CloseSession) error {
	c, err := c.Resolve()
	if err != nil || f.sessions.close == nil {
		return err
	}
	return f.sessions.close(c)
}

func (f *fake) RevokeSession(_ context.Context, r lock.RevokeSession) (lock.SessionInfo, error) {
	r, err := r.Resolve()
	if err != nil || f.sessions.revoke == nil {
		return lock.SessionInfo{Ref: r.Ref, OpenedAt: instant, ExpiresAt: instant, AsOf: instant}, err
	}
	return f.sessions.revoke(r)
}

func (f *fake) Session(_ context.Context, ref lock.SessionRef) (lock.SessionInfo, error) {
	if f.sessions.one == nil {
		return lock.SessionInfo{Ref: ref, OpenedAt: instant, ExpiresAt: instant, AsOf: instant}, nil
	}
	return f.sessions.one(ref)
}

func (f *fake) Sessions(_ context.Context, q lock.SessionQuery) (lock.Page[lock.SessionInfo], error) {
	q, err := q.Resolve()
	if err != nil || f.sessions.list == nil {
		return lock.Page[lock.SessionInfo]{}, err
	}
	return f.sessions.list(q)
}
