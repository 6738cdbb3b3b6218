package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// A spanCollector is an OTLP collector.
type spanCollector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*traces.Span
	services []string
}

func newSpanCollector(t *testing.T) *spanCollector {
	t.Helper()
	c := &spanCollector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		text, err := io.ReadAll(body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(text, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range sent.GetResourceSpans() {
			for _, a := range of.GetResource().GetAttributes() {
				if a.GetKey() == "service.name" {
					c.services = append(c.services, a.GetValue().GetStringValue())
				}
			}
			for _, scope := range of.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// all returns the spans that were exported so far.
func (c *spanCollector) all() []*traces.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// await waits for a span of the trace, and returns it.
func (c *spanCollector) await(t *testing.T, trace, name string) *traces.Span {
	t.Helper()
	var found *traces.Span
	await.Until(t, fmt.Sprintf("there is a span %q in the trace %s", name, trace), func() bool {
		i := slices.IndexFunc(c.all(), func(s *traces.Span) bool { return hex.EncodeToString(s.GetTraceId()) == trace && s.GetName() == name })
		if i >= 0 {
			found = c.all()[i]
		}
		return i >= 0
	})
	return found
}

// attribute returns an attribute of the span, as text.
func attribute(s *traces.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			v := a.GetValue()
			return cmp.Or(v.GetStringValue(), strconv.FormatInt(v.GetIntValue(), 10))
		}
	}
	return ""
}

// serveTraced starts paddock serve with the variables of OpenTelemetry.
func serveTraced(t *testing.T, env ...string) (*process, string) {
	t.Helper()
	p := &process{proctest.New(exec.Command(self(t), "serve", "--listen", "127.0.0.1:0", "--database-url", pgtest.URL(t)))}
	p.Cmd.Env = append(append(os.Environ(), actAsPaddock+"=1", "PADDOCK_LOG_LEVEL=debug"), env...)
	p.Start(t)
	return p, "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
}

// post sends a body with a traceparent.
func post(t *testing.T, url, parent, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if parent != "" {
		r.Header.Set("Traceparent", parent)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

const (
	oneTrace, otherTrace = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"
	remoteSpan           = "b7ad6b7169203331"
)

// TestATraceShowsRequestWaitBatchAndSQL: a trace that a client began goes on through the service.
func TestATraceShowsRequestWaitBatchAndSQL(t *testing.T) {
	t.Parallel()
	c := newSpanCollector(t)
	p, base := serveTraced(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_SERVICE_NAME=locks")
	held := uuid.NewString()
	post(t, base+"/v1/locks/jobs:nightly/acquire", "00-"+oneTrace+"-"+remoteSpan+"-01", `{"holder":"a","lease_id":"`+held+`"}`)
	request := c.await(t, oneTrace, "POST /v1/locks/{name}/acquire")
	if hex.EncodeToString(request.GetParentSpanId()) != remoteSpan || request.GetKind() != traces.Span_SPAN_KIND_SERVER ||
		attribute(request, "paddock.lock") != "jobs:nightly" || attribute(request, "http.response.status_code") != "201" {
		t.Errorf("the span of the request is %v", request)
	}
	batch := c.await(t, oneTrace, "decide a batch")
	if !bytes.Equal(batch.GetParentSpanId(), request.GetSpanId()) || len(batch.GetLinks()) != 1 ||
		!bytes.Equal(batch.GetLinks()[0].GetSpanId(), request.GetSpanId()) || attribute(batch, "paddock.batch.calls") != "1" {
		t.Errorf("the span of the batch is %v", batch)
	}
	p.Stderr.Await(t, `"msg":"request".*("trace_id":"`+oneTrace+`","span_id":"`+hex.EncodeToString(request.GetSpanId())+`")`)

	waited := make(chan struct{})
	go func() {
		defer close(waited)
		post(t, base+"/v1/locks/jobs:nightly/acquire", "00-"+otherTrace+"-"+remoteSpan+"-01", `{"holder":"b","wait_ms":50000}`)
	}()
	for queued := false; !queued; time.Sleep(10 * time.Millisecond) {
		var q struct{ Waiters []any }
		answer, err := http.Get(base + "/v1/locks/jobs:nightly/queue")
		if err == nil {
			err = json.NewDecoder(answer.Body).Decode(&q)
			_ = answer.Body.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		queued = len(q.Waiters) > 0
	}
	post(t, base+"/v1/locks/jobs:nightly/release", "", `{"lease_id":"`+held+`"}`)
	<-waited
	wait, second := c.await(t, otherTrace, "wait in the queue"), c.await(t, otherTrace, "POST /v1/locks/{name}/acquire")
	if !bytes.Equal(wait.GetParentSpanId(), second.GetSpanId()) || attribute(wait, "paddock.holder") != "b" {
		t.Errorf("the span of the wait is %v", wait)
	}
	below := map[string]bool{}
	for _, s := range c.all() {
		if text := attribute(s, "db.query.text"); text != "" {
			below[hex.EncodeToString(s.GetTraceId())] = true
			if strings.Contains(s.String(), held) {
				t.Errorf("a lease_id is in the span %v", s)
			}
		}
	}
	if !below[oneTrace] || !below[otherTrace] {
		t.Errorf("statements are in the traces %v only", below)
	}
	if !slices.Contains(c.services, "locks") {
		t.Errorf("the service is %q", c.services)
	}
}

// TestSpansAreOnlyOfSampledRequests: neither background work, nor probes, nor requests that are not sampled have
// spans.
func TestSpansAreOnlyOfSampledRequests(t *testing.T) {
	t.Parallel()
	c := newSpanCollector(t)
	p, base := serveTraced(t, "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+c.URL+"/v1/traces")
	post(t, base+"/v1/locks/a/acquire", "00-"+oneTrace+"-"+remoteSpan+"-00", `{"holder":"a"}`)
	if answer, err := http.Get(base + "/readyz"); err != nil || answer.Body.Close() != nil {
		t.Fatal(err)
	}
	post(t, base+"/v1/locks/b/acquire", "00-"+otherTrace+"-"+remoteSpan+"-01", `{"holder":"a"}`)
	p.Signal(t, syscall.SIGTERM) // exports what is left
	for _, s := range c.all() {
		if hex.EncodeToString(s.GetTraceId()) != otherTrace {
			t.Errorf("there is a span %v", s)
		}
	}
	c.await(t, otherTrace, "decide a batch")
}

// TestACommandBelongsToTheTraceOfItsEnvironment: a build system that traces sets TRACEPARENT.
func TestACommandBelongsToTheTraceOfItsEnvironment(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	seen := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Traceparent") + " " + r.Header.Get("Tracestate")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(proxy.Close)
	for parent, want := range map[string]string{
		"": " ", "nonsense": " ", "00-" + oneTrace + "-" + remoteSpan + "-01": "00-" + oneTrace + "-" + remoteSpan + "-01 a=b",
	} {
		d.env["TRACEPARENT"], d.env["TRACESTATE"], d.env["PADDOCK_URL"] = parent, "a=b", proxy.URL
		d.expectExit(exitUnreachable, "get", "jobs:nightly", "--retry=0s")
		if got := <-seen; got != want {
			t.Errorf("with %q the headers are %q, want %q", parent, got, want)
		}
	}
}

// TestVariablesOfOpenTelemetryAreChecked: what is not supported is an error, not silence.
func TestVariablesOfOpenTelemetryAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env    map[string]string
		wanted bool
		says   string
	}{
		{env: nil},
		{env: map[string]string{"OTEL_SERVICE_NAME": "locks"}},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}},
		{env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, wanted: true},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, wanted: true},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "console"}, says: "otlp, or none"},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, says: "port 4318"},
	} {
		wanted, err := wantsTraces(variablesOf(c.env))
		if wanted != c.wanted || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %t, %v", c.env, wanted, err)
		}
	}
}
