package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

const (
	acquireItem = `{"op": "acquire", "name": "a", "holder": "h"}`
	releaseItem = `{"op": "release", "name": "a", ` + `"lease_id": "` + leaseID + `"}`
)

// batchOf returns the body of a batch of those items.
func batchOf(items ...string) string { return `{"items": [` + strings.Join(items, ", ") + `]}` }

// batch sends the items and returns their results.
func (s harness) batch(items ...string) []result {
	s.t.Helper()
	got := s.post(batchPath, batchOf(items...))
	got.want(s.t, http.StatusOK, nil)
	return resultsOf(s.t, got.text)
}

// TestItemIsAnsweredLikeItsCall sends each item as a single call, too.
func TestItemIsAnsweredLikeItsCall(t *testing.T) {
	t.Parallel()
	replayed := false
	var refused error
	f := &fake{
		acquire: func(_ context.Context, a lock.Acquire) (lock.Grant, error) {
			g := grantOf(a)
			g.Replayed, g.Until = replayed, instant
			return g, refused
		},
		release: func(lock.Release) error { return refused },
	}
	s := serve(t, server.Options{Locks: f})
	check := func(path, item, body string) {
		t.Helper()
		alone, result := s.post(path, body), s.batch(item)[0]
		got := result.Lease
		if result.Problem != nil {
			got = result.Problem
			delete(got, "request_id")
			delete(alone.body, "request_id")
		}
		if diff := cmp.Diff(alone.body, got); result.Status != alone.StatusCode || diff != "" {
			t.Errorf("%s: %d alone, %d in a batch: %s", item, alone.StatusCode, result.Status, diff)
		}
	}
	for range 2 {
		check("/v1/locks/a/acquire", acquireItem, `{"holder": "h"}`)
		replayed = true
	}
	check("/v1/locks/a/release", releaseItem, oneID)
	for _, refused = range []error{
		&lock.Error{Code: lock.ErrHeld, Detail: "Somebody else has it, try later.", Holder: "w", RetryAfter: time.Second + 1, Newest: 3, Ahead: 2},
		&lock.Error{Code: lock.ErrLeaseLost, Detail: "It was revoked, stop the work.", Ended: lock.Revoked, EndedAt: instant, Token: 7, Reason: "r"},
		&lock.Error{Code: lock.ErrRateLimited}, lock.ErrUnavailable, lock.ErrUnknownOutcome, lock.ErrNameNotAllowed, fmt.Errorf("a fault with a secret"),
	} {
		check("/v1/locks/a/acquire", acquireItem, `{"holder": "h"}`)
		check("/v1/locks/a/release", releaseItem, oneID)
	}
}

// TestARefusedItemIsNotToldToWait, since no item can.
func TestARefusedItemIsNotToldToWait(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	item := `{"op": "acquire", "name": "a", "holder": "h"}`
	refused := s.batch(item, item)[1]
	if detail, _ := refused.Problem["detail"].(string); refused.Problem["code"] != "lock_held" || !strings.Contains(detail, "wait_ms (not in a batch)") {
		t.Errorf("%+v", refused)
	}
}

func TestBatchHasTheRequestTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{RequestTimeout: time.Millisecond, Locks: &fake{batch: func(ctx context.Context, items []lock.Command) []paddock.Result {
		<-ctx.Done()
		return paddock.FailAll(len(items), lock.ErrUnknownOutcome)
	}}})
	for _, r := range s.batch(acquireItem, releaseItem) {
		if r.Status != http.StatusServiceUnavailable || r.Problem["code"] != "unknown_outcome" {
			t.Errorf("%+v", r)
		}
	}
}

// TestBatchLogsEachCodeOnce sends a batch with a thousand refusals of two codes.
func TestBatchLogsEachCodeOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{batch: func(_ context.Context, items []lock.Command) []paddock.Result {
		results := paddock.FailAll(len(items), &lock.Error{Code: lock.ErrUnavailable, Cause: fmt.Errorf("the disk is full")})
		results[1].Err = fmt.Errorf("a fault")
		return results
	}}})
	s.batch(acquireItem, acquireItem, releaseItem, acquireItem)
	for text, want := range map[string]int{`"msg":"request"`: 1, `"msg":"request refused"`: 2, "the disk is full": 1, "a fault": 1, leaseID: 0} {
		if n := strings.Count(s.log.String(), text); n != want {
			t.Errorf("%s is in the log %d times, want %d:\n%s", text, n, want, s.log)
		}
	}
}
