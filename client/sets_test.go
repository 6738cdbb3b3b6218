package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
	return lock.Acquire{Set: []lock.Member{{Name: "b"}, {Name: "a", Mode: lock.Shared}}, LeaseID: leaseID, Holder: "worker-1"}
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
		_, err = c.Renew(t.Context(), lock.Renew{Set: setNames, LeaseID: leaseID})
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
			_, err := h.Renew(t.Context(), lock.Renew{Set: setNames, LeaseID: leaseID})
			return err
		})
		h.call(func() error { return h.Release(t.Context(), lock.Release{Set: setNames, LeaseID: leaseID}) })
		for _, name := range []string{"x", "y"} {
			h.call(func() error { return h.Release(t.Context(), lock.Release{Name: name, LeaseID: leaseID}) })
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
	set := transfer().Set
	for field, as := range map[string][]lock.Acquire{
		"locks": {
			{Name: "a", Set: set, Holder: "h"}, {Mode: lock.Shared, Set: set, Holder: "h"}, {Capacity: 3, Set: set, Holder: "h"},
		},
		"holder":   {{Set: set, Holder: "\xff"}},
		"metadata": {{Set: set, Holder: "h", Metadata: json.RawMessage(`{`)}},
	} {
		for _, a := range as {
			_, err := c.Acquire(t.Context(), a)
			expectField(t, err, field)
		}
	}
	_, err := c.Renew(t.Context(), lock.Renew{Name: "a", Set: setNames, LeaseID: leaseID})
	expectField(t, err, "names")
	expectField(t, c.Release(t.Context(), lock.Release{Name: "a", Set: setNames, LeaseID: leaseID}), "names")
	for field, item := range map[string]lock.Command{
		"locks": lock.Acquire{Set: set, Holder: "h"}, "names": lock.Release{Set: setNames, LeaseID: leaseID},
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

// TestACanceledWaitForASetGivesUpItsPlaces cancels an acquire that waits, and checks that its locks are released.
func TestACanceledWaitForASetGivesUpItsPlaces(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var sent []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		sent = append(sent, r.URL.Path+" "+string(body))
		mu.Unlock()
		if r.URL.Path == "/v1/acquire" {
			cancel()
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	a := transfer()
	a.Wait = lock.MaxWait
	_, err := open(t, client.Options{BaseURL: s.URL}).Acquire(ctx, a)
	expect(t, "Acquire", err, lock.ErrUnknownOutcome)
	mu.Lock()
	defer mu.Unlock()
	if want := `/v1/release {"lease_id":"` + leaseText + `","names":["b","a"]}`; len(sent) != 2 || sent[1] != want {
		t.Errorf("sent %q, want the second to be %s", sent, want)
	}
}
