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
// as probes, have none. The events that the request causes have the id of its trace: that of its traceparent header, or
// that of the span, if it begins a trace that is recorded.
func (s *Server) startSpan(r *http.Request) (ctx context.Context, span trace.Span) {
	ctx = r.Context()
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		return ctx, nil
	}
	if r.Header["Traceparent"] != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	of := trace.SpanContextFromContext(ctx)
	if s.traces != nil {
		ctx, span = s.traces.Tracer(tracing.Scope).Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
		if began := span.SpanContext(); began.IsSampled() {
			of = began
		}
	}
	if of.HasTraceID() {
		ctx = lock.WithCaller(ctx, lock.Caller{Trace: of.TraceID().String()})
	}
	return ctx, span
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
