package tracing_test

import (
	"context"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/internal/tracing"
)

// TestSharedWorkIsLinkedToAllItsCallers: it is below the first one, and ends with the context of the work, not with
// theirs.
func TestSharedWorkIsLinkedToAllItsCallers(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	var callers []trace.Span
	for _, name := range []string{"first", "second"} {
		ctx, cancel := context.WithCancel(t.Context())
		ctx, span := provider.Tracer("test").Start(ctx, name)
		callers = append(callers, tracing.Recorded(ctx))
		cancel()
		span.SetName(name)
	}
	ctx, span := tracing.StartShared(t.Context(), "work", callers)
	if ctx.Err() != nil || trace.SpanFromContext(ctx) != span {
		t.Errorf("the context of the work is %v", ctx)
	}
	span.End()
	done := recorder.Ended()
	if len(done) != 1 || done[0].Parent().SpanID() != callers[0].SpanContext().SpanID() || len(done[0].Links()) != 2 {
		t.Fatalf("the spans are %+v", done)
	}
	for i, link := range done[0].Links() {
		if link.SpanContext.SpanID() != callers[i].SpanContext().SpanID() {
			t.Errorf("link %d leads to %v", i, link.SpanContext)
		}
	}
}

// TestNothingIsRecordedForAnUntracedCaller: nor for one whose trace is not sampled.
func TestNothingIsRecordedForAnUntracedCaller(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder), sdk.WithSampler(sdk.NeverSample()))
	unsampled, _ := provider.Tracer("test").Start(t.Context(), "unsampled")
	for name, ctx := range map[string]context.Context{"untraced": t.Context(), "unsampled": unsampled} {
		if tracing.Recorded(ctx) != nil {
			t.Errorf("%s: there is a span", name)
		}
		if _, span := tracing.Start(ctx, "below"); span.IsRecording() {
			t.Errorf("%s: a span below it records", name)
		}
		if _, span := tracing.StartShared(ctx, "work", nil); span.IsRecording() {
			t.Errorf("%s: shared work records", name)
		}
	}
	if n := len(recorder.Started()); n > 0 {
		t.Errorf("%d spans were started", n)
	}
}
