package server

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/internal/wire/request"
	"github.com/paddock-lock/paddock/lock"
)

// acquireSet acquires several locks together, or waits for them.
func (s *Server) acquireSet(w http.ResponseWriter, r *http.Request) {
	s.acquire(w, r, listForm{s.locks}, request.Read[request.AcquireSet], setReply)
}

// renewSet extends the leases of a set.
func (s *Server) renewSet(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.RenewSet], listForm{s.locks}.Renew, wire.LeaseSetOf)
}

// releaseSet ends the leases of a set.
func (s *Server) releaseSet(w http.ResponseWriter, r *http.Request) {
	s.release(w, r, listForm{s.locks}, request.Read[request.ReleaseSet])
}

// A listForm is the Service for calls whose body has a list of locks, and refuses in this form.
type listForm struct{ paddock.Service }

func (f listForm) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	g, err := f.Service.Acquire(ctx, a)
	return g, wire.ListError(err, "locks")
}

func (f listForm) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	g, err := f.Service.Renew(ctx, r)
	return g, wire.ListError(err, "names")
}

func (f listForm) Release(ctx context.Context, r lock.Release) error {
	return wire.ListError(f.Service.Release(ctx, r), "names")
}
