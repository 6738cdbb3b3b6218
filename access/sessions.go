package access

import (
	"context"
	"slices"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// notCovered replaces the name of a lock that the key does not cover.
const notCovered = "(not covered)"

// OpenSession needs no prefixes: a session has no name, and each acquire with its session_id is checked by itself.
func (g *guard) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	return checkedCall(ctx, g, requirement{role: Lock},
		func(ctx context.Context) (lock.SessionGrant, error) { return g.inner.OpenSession(ctx, o) })
}

func (g *guard) RenewSession(ctx context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	return checkedCall(ctx, g, requirement{role: Lock, keepsLease: true},
		func(ctx context.Context) (lock.SessionGrant, error) { return g.inner.RenewSession(ctx, r) })
}

func (g *guard) CloseSession(ctx context.Context, c lock.CloseSession) error {
	_, err := checkedCall(ctx, g, requirement{role: Lock, keepsLease: true},
		func(ctx context.Context) (struct{}, error) { return struct{}{}, g.inner.CloseSession(ctx, c) })
	return err
}

// RevokeSession requires a key for all names, because the session may have leases of any.
func (g *guard) RevokeSession(ctx context.Context, r lock.RevokeSession) (lock.SessionInfo, error) {
	return checkedCall(ctx, g, requirement{role: Admin, scopes: allNames()},
		func(ctx context.Context) (lock.SessionInfo, error) { return g.inner.RevokeSession(ctx, r) })
}

// Session hides the locks that the key does not cover.
func (g *guard) Session(ctx context.Context, ref lock.SessionRef) (lock.SessionInfo, error) {
	return checkedCall(ctx, g, requirement{role: Read},
		func(ctx context.Context) (lock.SessionInfo, error) {
			s, err := g.inner.Session(ctx, ref)
			k, ok := KeyFrom(ctx)
			s.Locks = slices.Clone(s.Locks)
			for i := range s.Locks {
				if l := &s.Locks[i]; !ok || !k.Covers(l.Name) {
					*l = lock.SessionLock{Name: notCovered, Mode: l.Mode}
				}
			}
			return s, err
		})
}

func (g *guard) Sessions(ctx context.Context, q paddock.SessionQuery) (paddock.Page[lock.SessionInfo], error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: allNames()},
		func(ctx context.Context) (paddock.Page[lock.SessionInfo], error) { return g.inner.Sessions(ctx, q) })
}
