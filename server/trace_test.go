package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

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
