package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/internal/tracing"
	"github.com/paddock-lock/paddock/lock"
)

// startSpan starts the span of a request under /v1/, and returns the request's context with it. Other requests, such
// as probes, have none.
func (s *Server) startSpan(r *http.Request) (context.Context, trace.Span) {
	ctx := r.Context()
	if s.traces == nil || !strings.HasPrefix(r.URL.Path, "/v1/") {
		return ctx, nil
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	return s.traces.Tracer(tracing.Scope).Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
}

// recordLocks adds the locks that a body names to the span, if all names are valid.
func recordLocks(ctx context.Context, in any) {
	span := tracing.Recorded(ctx)
	c, ok := in.(lock.Command)
	if span == nil || !ok {
		return
	}
	invalid := func(name string) bool { return lock.CheckName(name) != nil }
	if names := c.Names(); len(names) <= lock.MaxSetSize && !slices.ContainsFunc(names, invalid) {
		span.SetAttributes(tracing.Locks.StringSlice(names))
	}
}

// endSpan ends the span of a request, if it has one. Its name has the pattern of the route, not the names of locks.
func endSpan(span trace.Span, q *requestContext, method string, status int) {
	if span == nil {
		return
	}
	route := q.route.RoutePattern()
	span.SetName(strings.TrimSpace(method + " " + route))
	span.SetAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route),
		semconv.HTTPResponseStatusCode(status), tracing.RequestID.String(q.id[0]))
	if name := q.route.URLParam("name"); name != "" {
		span.SetAttributes(tracing.Lock.String(name))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	span.End()
}
