package server_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

const batchPath = "/v1/batch"

// A result is one result of a batch, as answered.
type result struct {
	Status  int            `json:"status"`
	Lease   map[string]any `json:"lease"`
	Problem map[string]any `json:"problem"`
}

// resultsOf returns the results in the answer to a batch.
func resultsOf(t testing.TB, text string) []result {
	t.Helper()
	var in struct{ Results []result }
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return in.Results
}

// checkResults checks that each result fits its item and equals the answer to a single call.
func (c contract) checkResults(sent []byte, answer *http.Response, got []byte) {
	c.t.Helper()
	var asked struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(sent, &asked); err != nil {
		c.t.Fatalf("accepted %.300q: %v", sent, err)
	}
	results := resultsOf(c.t, string(got))
	if len(results) != len(asked.Items) {
		c.t.Fatalf("%d results of %d items", len(results), len(asked.Items))
	}
	for _, r := range results {
		c.checkResult(r, answer.Header.Get("X-Request-Id"))
	}
}

func (c contract) checkResult(r result, requestID string) {
	c.t.Helper()
	refused := r.Status >= http.StatusBadRequest
	if refused != (r.Problem != nil) || (r.Lease != nil) != (r.Status == http.StatusOK || r.Status == http.StatusCreated) {
		c.t.Errorf("%d with the lease %v and the problem %v", r.Status, r.Lease, r.Problem)
	}
	if !refused {
		return
	}
	if p := r.Problem; p["status"] != float64(r.Status) || p["title"] != http.StatusText(r.Status) || p["request_id"] != requestID {
		c.t.Errorf("%d with problem %v", r.Status, p)
	}
	checkDetail(c.t, r.Problem["detail"])
	late := r.Status == http.StatusServiceUnavailable || r.Status == http.StatusTooManyRequests
	if late && r.Problem["retry_after_ms"] == nil {
		c.t.Errorf("%d without retry_after_ms: %v", r.Status, r.Problem)
	}
}
