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

// AcquireSet acquires several locks together, or waits for them.
func (a *handlers) AcquireSet(w http.ResponseWriter, r *http.Request) {
	a.acquire(w, r, "", traced(r.Context(), (*request.Decoder).AcquireSet), setReply)
}

// RenewSet extends the leases of a set.
func (a *handlers) RenewSet(w http.ResponseWriter, r *http.Request) {
	execute(a, w, r, "", traced(r.Context(), (*request.Decoder).RenewSet), a.locks.Renew, wire.LeaseSetOf)
}

// ReleaseSet ends the leases of a set.
func (a *handlers) ReleaseSet(w http.ResponseWriter, r *http.Request) {
	a.release(w, r, "", traced(r.Context(), (*request.Decoder).ReleaseSet))
}

// traced returns a decoder that adds the names of the command's locks to the span in ctx, if all of them are valid.
func traced[Command lock.Command](
	ctx context.Context, from func(*request.Decoder, string, []byte) (Command, error),
) func(*request.Decoder, string, []byte) (Command, error) {
	return func(d *request.Decoder, name string, body []byte) (Command, error) {
		c, err := from(d, name, body)
		if span := trace.SpanFromContext(ctx); err == nil && span.IsRecording() {
			invalid := func(name string) bool { return lock.CheckName(name) != nil }
			if names := c.Names(); len(names) <= lock.MaxSetSize && !slices.ContainsFunc(names, invalid) {
				span.SetAttributes(tracing.Locks.StringSlice(names))
			}
		}
		return c, err
	}
}
