package server

import (
	"context"
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/internal/tracing"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/internal/wire/request"
	"github.com/paddock-lock/paddock/lock"
)

// acquireSet acquires several locks together, or waits for them.
func (s *Server) acquireSet(w http.ResponseWriter, r *http.Request) {
	s.acquire(w, r, traced(r.Context(), request.Read[request.AcquireSet]), setReply)
}

// renewSet extends the leases of a set.
func (s *Server) renewSet(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, traced(r.Context(), request.Read[request.RenewSet]), s.locks.Renew, wire.LeaseSetOf)
}

// releaseSet ends the leases of a set.
func (s *Server) releaseSet(w http.ResponseWriter, r *http.Request) {
	s.release(w, r, traced(r.Context(), request.Read[request.ReleaseSet]))
}

// traced returns a decoder that adds the names of the command's locks to the span in ctx, if all of them are valid.
func traced[Command lock.Command](
	ctx context.Context, from func(string, []byte) (Command, error),
) func(string, []byte) (Command, error) {
	return func(name string, body []byte) (Command, error) {
		c, err := from(name, body)
		if span := trace.SpanFromContext(ctx); err == nil && span.IsRecording() {
			invalid := func(name string) bool { return lock.CheckName(name) != nil }
			if names := c.Names(); len(names) <= lock.MaxSetSize && !slices.ContainsFunc(names, invalid) {
				span.SetAttributes(tracing.Locks.StringSlice(names))
			}
		}
		return c, err
	}
}
