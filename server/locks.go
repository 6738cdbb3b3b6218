package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// An api implements the operations of openapi.yaml: decode, call the Service, reply.
type api struct {
	*Server
	document document
}

var _ openapi.ServerInterface = (*api)(nil)

// AcquireLock acquires a lock, or waits for it.
func (a *api) AcquireLock(w http.ResponseWriter, r *http.Request, name wire.Name) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := decode(w, r, name, (*wire.Decoder).Acquire)
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		grant, err := a.locks.Acquire(ctx, in)
		return granted(grant), err
	})
}

// RenewLease moves the end of a lease.
func (a *api) RenewLease(w http.ResponseWriter, r *http.Request, name wire.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, name, (*wire.Decoder).Renew)
		if err != nil {
			return reply{}, err
		}
		grant, err := a.locks.Renew(ctx, in)
		return ok(wire.LeaseOf(grant)), err
	})
}

// ReleaseLease ends a lease.
func (a *api) ReleaseLease(w http.ResponseWriter, r *http.Request, name wire.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, name, (*wire.Decoder).Release)
		if err != nil {
			return reply{}, err
		}
		return noContent(), a.locks.Release(ctx, in)
	})
}

// RevokeLock takes a lease from its holder.
func (a *api) RevokeLock(w http.ResponseWriter, r *http.Request, name wire.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, name, (*wire.Decoder).Revoke)
		if err != nil {
			return reply{}, err
		}
		lock, err := a.locks.Revoke(ctx, in)
		return ok(wire.LockOf(lock)), err
	})
}

// VerifyToken tells whether a token is current.
func (a *api) VerifyToken(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, "", (*wire.Decoder).Verify)
		if err != nil {
			return reply{}, err
		}
		verification, err := a.locks.VerifyToken(ctx, in)
		return ok(wire.VerificationOf(verification)), err
	})
}

// WriteFenced writes a resource under a token.
func (a *api) WriteFenced(w http.ResponseWriter, r *http.Request, key wire.Key) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, key, (*wire.Decoder).FencedWrite)
		if err != nil {
			return reply{}, err
		}
		value, err := a.locks.WriteFenced(ctx, in)
		return ok(wire.FencedValueOf(value)), err
	})
}
