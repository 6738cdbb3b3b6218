package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// An api answers what openapi.yaml describes: in, do, out.
type api struct {
	*Server
	document document
}

var _ openapi.ServerInterface = (*api)(nil)

// AcquireLock takes a lock, or waits for it.
func (a *api) AcquireLock(w http.ResponseWriter, r *http.Request, name openapi.Name) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := read(w, r, name, acquireFrom)
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		grant, err := a.locks.Acquire(ctx, in)
		return granted(grant), err
	})
}

// RenewLease moves a lease's end.
func (a *api) RenewLease(w http.ResponseWriter, r *http.Request, name openapi.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := read(w, r, name, renewFrom)
		if err != nil {
			return reply{}, err
		}
		grant, err := a.locks.Renew(ctx, in)
		return ok(leaseOf(grant)), err
	})
}

// ReleaseLease gives a lease up.
func (a *api) ReleaseLease(w http.ResponseWriter, r *http.Request, name openapi.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := read(w, r, name, releaseFrom)
		if err != nil {
			return reply{}, err
		}
		return noContent(), a.locks.Release(ctx, in)
	})
}

// RevokeLock takes a lease away from its holder.
func (a *api) RevokeLock(w http.ResponseWriter, r *http.Request, name openapi.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := read(w, r, name, revokeFrom)
		if err != nil {
			return reply{}, err
		}
		lock, err := a.locks.Revoke(ctx, in)
		return ok(lockOf(lock)), err
	})
}

// VerifyToken says how a token stands.
func (a *api) VerifyToken(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := read(w, r, "", verifyFrom)
		if err != nil {
			return reply{}, err
		}
		verdict, err := a.locks.VerifyToken(ctx, in)
		return ok(verdictOf(verdict)), err
	})
}

// WriteFenced writes a resource under a token.
func (a *api) WriteFenced(w http.ResponseWriter, r *http.Request, key openapi.Key) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := read(w, r, key, writeFrom)
		if err != nil {
			return reply{}, err
		}
		fenced, err := a.locks.WriteFenced(ctx, in)
		return ok(fencedOf(fenced)), err
	})
}

// read returns the command that the request's body is.
func read[In, Command any](w http.ResponseWriter, r *http.Request, name string, from func(string, In) (Command, error)) (Command, error) {
	in, err := decode[In](w, r)
	if err != nil {
		return *new(Command), err
	}
	return from(name, in)
}
