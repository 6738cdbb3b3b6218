package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/server"
)

func TestTheBodyOfABatchIsReadStrictly(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000)
	cases := []badRequest{
		{name: "white space alone", body: "  \n", pointer: "", detail: `is empty. Send a JSON object such as {"items": ...}`},
		{name: "text that is not JSON", body: `items`, pointer: "", detail: "not valid JSON at byte 0"},
		{name: "an item alone", body: acquireItem, pointer: "/op", detail: "which may have items"},
		{name: "no item", body: `{"items": []}`, pointer: "/items", detail: "items has 0 items; give 1 to 1000"},
		{name: "no items", body: `{}`, pointer: "/items", detail: "items is missing; add it"},
		{name: "no list", body: `{"items": ` + acquireItem + `}`, pointer: "/items", detail: "must be in a list"},
		{name: "another member", body: `{"items": [` + acquireItem + `], "atomic": true}`, pointer: "/atomic", detail: "which may have items"},
		{name: "items twice", body: `{"items": [1], "items": [1]}`, pointer: "/items", detail: "is there twice"},
		{name: "something after it", body: batchOf(acquireItem) + `{}`, pointer: "", detail: "something after its object"},
		{name: "a list cut short", body: `{"items": [` + acquireItem, pointer: "", detail: "ends too early"},
		{name: "a comma too many", body: `{"items": [1,]}`, pointer: "", detail: "not valid JSON"},
		{name: "an item too deep to read", body: `{"items": [` + deep, pointer: "", detail: "is nested too deep at byte 10009"},
		{name: "1001 items", body: batchOf(strings.Split(strings.Repeat("1 ", 1001), " ")[:1001]...), pointer: "/items", detail: "exceed the maximum of 1000"},
		{name: "a parameter", path: batchPath + "?wait_ms=1", body: batchOf(acquireItem), pointer: "wait_ms", detail: "has none"},
		{name: "a body too large", body: batchOf(acquireItem) + strings.Repeat(" ", server.MaxBatchBodySize), status: http.StatusRequestEntityTooLarge,
			code: "body_too_large", detail: "more than 1048576 bytes"},
	}
	for i := range cases {
		if cases[i].path == "" {
			cases[i].path = batchPath
		}
	}
	wantBadRequests(t, cases)
}

// A badItem is an item and what must be said of it.
type badItem struct {
	name, item string
	status     int // zero: 400
	pointer    string
	detail     string
}

// badItems are those that are none.
var badItems = []badItem{
	{name: "a number", item: `1`, detail: "The item is not a JSON object"},
	{name: "no op", item: `{"name": "a", "holder": "h"}`, pointer: "/op", detail: "must be acquire"},
	{name: "another op", item: `{"op": "revoke", "name": "a", "fencing_token": 1, "reason": "r"}`, pointer: "/op", detail: "must be acquire"},
	{name: "two ops", item: `{"op": "acquire", "name": "a", "holder": "h", "op": "renew"}`, pointer: "/op", detail: "is there twice"},
	{name: "no name", item: `{"op": "acquire", "holder": "h"}`, pointer: "/name", detail: "is missing"},
	{name: "an encoded name", item: `{"op": "acquire", "name": "a%3Ab", "holder": "h"}`, pointer: "/name", detail: "at byte 1"},
	{name: "a name twice, escaped", item: `{"op": "renew", "name": "a", "n\u0061me": "b", "lease_id": "` + leaseID + `"}`, pointer: "/name", detail: "is there twice"},
	{name: "no lease_id", item: `{"op": "renew", "name": "a"}`, pointer: "/lease_id", detail: "is missing"},
	{name: "a member of another op", item: `{"op": "release", "name": "a", "lease_id": "` + leaseID + `", "ttl_ms": 100}`, pointer: "/ttl_ms", detail: "is not a member"},
	{name: "a wait", item: `{"op": "acquire", "name": "a", "holder": "h", "wait_ms": 0}`, pointer: "/wait_ms", detail: "is not a member"},
	{name: "a TTL of zero", item: `{"op": "renew", "name": "a", "lease_id": "` + leaseID + `", "ttl_ms": 0}`, pointer: "/ttl_ms", detail: "is 0; give"},
	{name: "permits of capacity zero", item: `{"op": "acquire", "name": "a", "holder": "h", "mode": "permit", "capacity": 0}`, pointer: "/capacity", detail: "is 0; give 1 to 1000, the number of permits."},
	{name: "metadata with a name twice", item: `{"op": "acquire", "name": "a", "holder": "h", "metadata": {"b": 1, "b": 2}}`, pointer: "/metadata/b", detail: "is there twice"},
	{name: "more than a body may have", item: `{"op": "acquire", "name": "a", "holder": "` + strings.Repeat("h", server.MaxBodySize) + `"}`,
		status: http.StatusRequestEntityTooLarge, detail: "The item has more than 16384 bytes"},
}

// TestItemsAreReadStrictly has each bad item between two good ones, which are done.
func TestItemsAreReadStrictly(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{}})
	for _, c := range badItems {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

func (c badItem) run(t *testing.T, s harness) {
	t.Helper()
	s.t = t
	s.client = &http.Client{Transport: contract{t, s.client.Transport.(contract).next}}
	results := s.batch(acquireItem, c.item, releaseItem)
	if results[0].Status != http.StatusCreated || results[2].Status != http.StatusNoContent {
		t.Errorf("beside it: %+v, %+v", results[0], results[2])
	}
	got := results[1].Problem
	status, code, pointer := http.StatusBadRequest, "invalid_request", any(c.pointer)
	if c.status != 0 {
		status, code, pointer = c.status, "body_too_large", nil
	}
	detail, _ := got["detail"].(string)
	if results[1].Status != status || got["code"] != code || got["pointer"] != pointer || !strings.Contains(detail, c.detail) {
		t.Errorf("%+v, want %d at %q: %s", results[1], status, c.pointer, c.detail)
	}
}

func TestABatchHasAsMuchAsMayBe(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{}})
	items := make([]string, paddock.MaxBatch)
	for i := range items {
		items[i] = fmt.Sprintf(`{"op": "acquire", "name": "a:%d", "holder": "h"}`, i)
	}
	for i, r := range s.batch(items...) {
		if r.Status != http.StatusCreated || r.Lease["name"] != fmt.Sprint("a:", i) {
			t.Fatalf("item %d: %+v", i, r)
		}
	}
	item := strings.Replace(acquireItem, "}", strings.Repeat(" ", server.MaxBodySize-len(acquireItem))+"}", 1)
	body := batchOf(item)
	body += strings.Repeat(" ", server.MaxBatchBodySize-len(body))
	s.post(batchPath, body).want(t, http.StatusOK, nil)
}

// TestSoManyLargeBatchesAreReadAtOnce: what is longer than a single call's body has
// its room in memory.
func TestSoManyLargeBatchesAreReadAtOnce(t *testing.T) {
	t.Parallel()
	s := server.New(server.Options{Locks: inMemory()})
	send := func(body io.Reader, length int64) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, batchPath, body)
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = length
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	done := make(chan int)
	var bodies []*io.PipeWriter
	for i := range server.MaxLargeBodies {
		in, out := io.Pipe()
		go func() { done <- send(in, []int64{server.MaxBodySize + 1, -1}[i%2]).Code }()
		if _, err := io.WriteString(out, "{"); err != nil { // once it is read, the room is taken
			t.Fatal(err)
		}
		bodies = append(bodies, out)
	}
	if w := send(strings.NewReader(batchOf(acquireItem)), -1); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "send smaller ones") {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
	if w := send(strings.NewReader(batchOf(acquireItem)), server.MaxBodySize); w.Code != http.StatusOK {
		t.Errorf("a small one: %d %s", w.Code, w.Body)
	}
	for _, out := range bodies {
		if _, err := io.WriteString(out, batchOf(acquireItem)[1:]); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		if code := <-done; code != http.StatusOK {
			t.Errorf("one that had room: %d", code)
		}
	}
	if w := send(strings.NewReader(batchOf(acquireItem)), -1); w.Code != http.StatusOK {
		t.Errorf("one after them: %d %s", w.Code, w.Body)
	}
}
