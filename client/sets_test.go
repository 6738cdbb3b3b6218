package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

const setJSON = `{"lease_id":"` + leaseText + `","holder":"worker-1","ttl_ms":30000,"grace_ms":2000,"expires_in_ms":29000,
	"acquired_at":"2026-01-02T03:04:05.678901Z","expires_at":"2026-01-02T03:04:35.678901Z","a_later_field":true,
	"locks":[{"name":"a","mode":"shared","slot":2,"fencing_token":41},{"name":"b","mode":"exclusive","slot":0,"fencing_token":42}]}`

// transfer acquires two locks.
func transfer() lock.Acquire {
	return lock.Acquire{Locks: []lock.Member{{Name: "b"}, {Name: "a", Mode: lock.Shared}}, LeaseID: leaseID, Holder: "worker-1"}
}

// setNames are those of transfer.
var setNames = []string{"b", "a"}

func TestASetThatWasNotAskedForIsRefused(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"one lease": leaseJSON, "another lock": strings.Replace(setJSON, `"name":"b"`, `"name":"c"`, 1), "no locks": `{}`,
	} {
		c := over(t, saying(http.StatusOK, "application/json", body))
		_, err := c.Acquire(t.Context(), transfer())
		expect(t, name, err, lock.ErrUnknownOutcome)
		_, err = c.Renew(t.Context(), lock.Renew{Locks: setNames, LeaseID: leaseID})
		expect(t, name, err, lock.ErrUnknownOutcome)
	}
}

// TestSetsAreNotCoalesced sends three calls about sets and two about one lock while all connections are in use.
func TestSetsAreNotCoalesced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		busy := h.saturate()
		h.call(func() error {
			_, err := h.Acquire(t.Context(), transfer())
			return err
		})
		h.call(func() error {
			_, err := h.Renew(t.Context(), lock.Renew{Locks: setNames, LeaseID: leaseID})
			return err
		})
		h.call(func() error { return h.Release(t.Context(), lock.Release{Locks: setNames, LeaseID: leaseID}) })
		for _, name := range []string{"x", "y"} {
			h.call(func() error { return h.Release(t.Context(), lock.Release{Locks: []string{name}, LeaseID: leaseID}) })
		}
		sets := h.requests(3)
		for i, path := range []string{"/v1/acquire", "/v1/renew", "/v1/release"} {
			if sets[i].path != path {
				t.Errorf("request %d is for %s, want %s", i, sets[i].path, path)
			}
		}
		sets[0].answer(http.StatusCreated, "application/json", setJSON)
		sets[1].answer(http.StatusOK, "application/json", setJSON)
		sets[2].answer(http.StatusNoContent, "application/json", "")
		grantAll(busy)
		h.request("[re:x re:y]").grant()
		h.all.Wait()
	})
}

func TestSetCallsThatCannotBeSentAreRefused(t *testing.T) {
	t.Parallel()
	c := over(t, func(r *http.Request) (*http.Response, error) {
		t.Errorf("sent %s %s", r.Method, r.URL)
		return reply(r, http.StatusOK, "application/json", setJSON), nil
	})
	set := transfer().Locks
	for field, as := range map[string][]lock.Acquire{
		"locks":    {{Holder: "h"}},
		"holder":   {{Locks: set, Holder: "\xff"}},
		"metadata": {{Locks: set, Holder: "h", Metadata: json.RawMessage(`{`)}},
	} {
		for _, a := range as {
			_, err := c.Acquire(t.Context(), a)
			expectField(t, err, field)
		}
	}
	_, err := c.Renew(t.Context(), lock.Renew{LeaseID: leaseID})
	expectField(t, err, "names")
	expectField(t, c.Release(t.Context(), lock.Release{LeaseID: leaseID}), "names")
	for field, item := range map[string]lock.Command{
		"locks": lock.Acquire{Locks: set, Holder: "h"}, "names": lock.Release{Locks: setNames, LeaseID: leaseID},
	} {
		expectField(t, c.Batch(t.Context(), []lock.Command{item})[0].Err, field)
	}
}

func expectField(t *testing.T, err error, field string) {
	t.Helper()
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != lock.ErrInvalid || e.Field != field {
		t.Errorf("the error is %#v, want the field %s", err, field)
	}
}
