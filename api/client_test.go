package api_test

import (
	"bufio"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newClient returns a client of a new service with a database.
func newClient(t *testing.T) *api.Client {
	t.Helper()
	return &api.Client{BaseURL: replica.Start(t, pgtest.URL(t))}
}

// TestClientLocksARealService acquires a lock, is refused, renews, verifies, releases, and reads what happened.
func TestClientLocksARealService(t *testing.T) {
	t.Parallel()
	c, ctx, id, name := newClient(t), t.Context(), uuid.New(), "jobs:nightly"
	acquire := api.AcquireRequest{Holder: "worker-1", LeaseID: &id, TTLMs: new(int64(30_000)), Metadata: []byte(`{"a":"<"}`)}
	lease, res, err := c.AcquireLock(ctx, name, acquire)
	if err != nil || res.StatusCode != http.StatusCreated || lease.Name != name || lease.LeaseID != id || lease.FencingToken < 1 {
		t.Fatalf("acquire: %+v, %+v, %v", lease, res, err)
	}
	if _, res, err = c.AcquireLock(ctx, name, acquire); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the same acquire again: %+v, %v", res, err)
	}
	_, _, err = c.AcquireLock(ctx, name, api.AcquireRequest{Holder: "worker-2"})
	if e := (*api.Error)(nil); !errors.As(err, &e) || e.Response.StatusCode != http.StatusConflict ||
		e.Problem.Code != api.CodeLockHeld || *e.Problem.Holder != "worker-1" {
		t.Errorf("an acquire by another holder: %v", err)
	}
	renewed, _, err := c.RenewLease(ctx, name, api.RenewRequest{LeaseID: id, TTLMs: new(int64(60_000))})
	if err != nil || renewed.FencingToken != lease.FencingToken || renewed.TTLMs != 60_000 {
		t.Errorf("renew: %+v, %v", renewed, err)
	}
	verification, _, err := c.VerifyToken(ctx, api.VerifyRequest{Name: name, FencingToken: lease.FencingToken})
	if err != nil || !verification.Current || verification.Status != api.Current {
		t.Errorf("verify: %+v, %v", verification, err)
	}
	if res, err := c.ReleaseLease(ctx, name, api.ReleaseRequest{LeaseID: id}); err != nil || res.StatusCode != http.StatusNoContent {
		t.Errorf("release: %+v, %v", res, err)
	}
	events, _, err := c.ListEvents(ctx, api.ListEventsParams{Lock: &name, Limit: new(1)})
	if err != nil || len(events.Events) != 1 || events.Events[0].Kind != api.EventKindGranted {
		t.Errorf("events: %+v, %v", events, err)
	}
	kinds := []api.EventKind{api.EventKindReleased, api.EventKindExpired}
	events, _, err = c.ListEvents(ctx, api.ListEventsParams{Lock: &name, Kind: &kinds, Since: &lease.AcquiredAt})
	if err != nil || len(events.Events) != 1 || events.Events[0].Kind != api.EventKindReleased {
		t.Errorf("events of two kinds since an instant: %+v, %v", events, err)
	}
	free, res, err := c.GetLock(ctx, name, api.GetLockParams{})
	if err != nil || free.State != api.Free {
		t.Fatalf("get: %+v, %v", free, err)
	}
	unchanged, res, err := c.GetLock(ctx, name, api.GetLockParams{IfNoneMatch: new(res.Header.Get("ETag"))})
	if err != nil || unchanged != nil || res.StatusCode != http.StatusNotModified {
		t.Errorf("get of the same version: %+v, %+v, %v", unchanged, res, err)
	}
}

func TestClientSendsBatchesAndReadsStreams(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	results, _, err := c.Batch(t.Context(), api.BatchRequest{Items: []api.BatchItem{
		api.BatchAcquire{Op: api.Acquire, Name: "a", Holder: "h"},
		api.BatchRenew{Op: api.Renew, Name: "b", LeaseID: uuid.New()},
	}})
	if err != nil || results.Results[0].Lease == nil || results.Results[1].Problem.Code != api.CodeLeaseLost {
		t.Errorf("batch: %+v, %v", results, err)
	}
	stream, err := c.StreamEvents(t.Context(), api.StreamEventsParams{LastEventID: new("0")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Body.Close() })
	if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "id: ") {
		t.Errorf("the stream begins with %q, %v", line, err)
	}
}

// TestAnswerOfAProxyIsAnErrorWithoutACode sends a request to a server that is not Paddock.
func TestAnswerOfAProxyIsAnErrorWithoutACode(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	_, _, err := (&api.Client{BaseURL: s.URL}).GetLock(t.Context(), "a", api.GetLockParams{})
	if e := (*api.Error)(nil); !errors.As(err, &e) || e.Response.StatusCode != http.StatusNotFound || e.Problem.Code != "" {
		t.Errorf("%v", err)
	}
}

// TestDocumentedExampleIsCompiled looks for the lines of the Go example in docs/generating.md in example_test.go.
func TestDocumentedExampleIsCompiled(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/generating.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```go\n")
	block, _, ended := strings.Cut(block, "```")
	if !found || !ended {
		t.Fatal("docs/generating.md has no block of Go")
	}
	if want := "\t" + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n\t"); !strings.Contains(string(example), want) {
		t.Errorf("example_test.go does not have the lines\n%s", want)
	}
}
