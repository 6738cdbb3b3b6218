package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// TestSpanHasTheLocksOfASet, unless a name is invalid or there are too many. No span has the lease_id.
func TestSpanHasTheLocksOfASet(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	s := serve(t, server.Options{Locks: memlock.New().Replica(1), Traces: traces})
	many := strings.TrimSuffix(strings.Repeat(`{"name": "a"},`, lock.MaxSetSize+1), ",")
	for _, c := range []struct {
		path, body string
		status     int
		locks      []string
	}{
		{acquireSetPath, transfer, http.StatusCreated, []string{"b", "a"}},
		{renewSetPath, namesOf("a", "b"), http.StatusOK, []string{"a", "b"}},
		{releaseSetPath, namesOf("a", "c"), http.StatusBadRequest, []string{"a", "c"}},
		{releaseSetPath, namesOf("a", "b"), http.StatusNoContent, []string{"a", "b"}},
		{releaseSetPath, namesOf("a", "b\n"), http.StatusBadRequest, nil},
		{acquireSetPath, setOf(many), http.StatusBadRequest, nil},
		{acquireSetPath, `{}`, http.StatusBadRequest, nil},
	} {
		s.post(c.path, c.body).want(t, c.status, nil)
		spans := recorder.Ended()
		span := spans[len(spans)-1]
		var locks []string
		for _, a := range span.Attributes() {
			if a.Key == "paddock.locks" {
				locks = a.Value.AsStringSlice()
			}
			if strings.Contains(a.Value.String(), leaseID) {
				t.Errorf("%s: the attribute %s shows the lease_id", c.path, a.Key)
			}
		}
		if diff := cmp.Diff(c.locks, locks); diff != "" || span.Name() != "POST "+c.path {
			t.Errorf("%s: the span %q has other locks (-want +got): %s", c.path, span.Name(), diff)
		}
	}
}

// TestEventsHaveTheTraceOfTheirCall, whether or not this service records traces; without a valid traceparent, only if it
// does.
func TestEventsHaveTheTraceOfTheirCall(t *testing.T) {
	t.Parallel()
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	sampled := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracetest.NewSpanRecorder()))
	for what, c := range map[string]struct {
		traces trace.TracerProvider
		header string
		want   func(id any) bool
	}{
		"a trace":                     {nil, "00-" + traceID + "-b7ad6b7169203331-00", func(id any) bool { return id == traceID }},
		"a trace that is recorded":    {sampled, "00-" + traceID + "-b7ad6b7169203331-01", func(id any) bool { return id == traceID }},
		"a trace that begins here":    {sampled, "", func(id any) bool { text, ok := id.(string); return ok && len(text) == 32 }},
		"no trace":                    {nil, "", func(id any) bool { return id == nil }},
		"a header that is not of one": {nil, "00-" + traceID + "<script>-00", func(id any) bool { return id == nil }},
	} {
		s := serve(t, server.Options{Locks: memlock.New().Replica(1), Traces: c.traces})
		r := s.request(http.MethodPost, acquirePath, `{"holder": "a"}`)
		if c.header != "" {
			r.Header.Set("Traceparent", c.header)
		}
		s.do(r).want(t, http.StatusCreated, nil)
		events := s.get("/v1/events").body["events"].([]any)
		if id := events[0].(map[string]any)["trace_id"]; !c.want(id) {
			t.Errorf("%s: the trace_id is %v", what, id)
		}
	}
}
