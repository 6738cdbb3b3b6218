// Package tracing starts the spans of one request: what a trace shows between the client and the database. The command
// sets up where spans go; without that, and for a request that is not sampled, nothing is recorded.
//
//	POST /v1/locks/{name}/acquire    server: from the header to the end of the answer
//	├── wait in the queue            from when the call is in the queue until it is granted the lock or gives up
//	└── decide a batch               one attempt; it is in the trace of one of its requests, and linked to all of them
//	    └── SQL                      each statement, by the tracer of the database driver
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/paddock-lock/paddock"

// Attributes of spans. A span never has a lease_id or another secret.
const (
	Lock      = attribute.Key("paddock.lock")
	Locks     = attribute.Key("paddock.locks") // of a set
	Holder    = attribute.Key("paddock.holder")
	Place     = attribute.Key("paddock.place")
	Calls     = attribute.Key("paddock.batch.calls")
	Missed    = attribute.Key("paddock.batch.missed") // calls to be decided again
	Looked    = attribute.Key("paddock.batch.looked") // locks were read
	Locked    = attribute.Key("paddock.batch.locked") // rows were locked
	RequestID = attribute.Key("paddock.request_id")
)

// Start starts a span below the one of ctx. It records nothing if that records nothing.
func Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, parent
	}
	return parent.TracerProvider().Tracer(Scope).Start(ctx, name, o...)
}

// Recorded returns the span of ctx, nil if it records nothing.
func Recorded(ctx context.Context) trace.Span {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return span
	}
	return nil
}

// StartShared starts a span for work that is done for several callers at once: below the first of their spans, and
// linked to all of them. Without any, it records nothing.
func StartShared(ctx context.Context, name string, callers []trace.Span) (context.Context, trace.Span) {
	if len(callers) == 0 {
		return Start(ctx, name)
	}
	links := make([]trace.Link, 0, len(callers))
	for _, span := range callers {
		links = append(links, trace.Link{SpanContext: span.SpanContext()})
	}
	return Start(trace.ContextWithSpan(ctx, callers[0]), name, trace.WithLinks(links...))
}
