package client_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

const (
	queueJSON = `{"name":"jobs:nightly","revision":7,"as_of":"2026-01-02T03:04:06Z","waiters":[
		{"position":1,"place":5,"mode":"permit","capacity":3,"holder":"w1","joined_at":"2026-01-02T03:04:05Z","waited_ms":1000,
			"attached":true,"ahead":0,"blocked_by":"holders","leases":[{"slot":1,"mode":"shared","holder":"r","fencing_token":41,
			"acquired_at":"2026-01-02T03:04:00Z","expires_at":"2026-01-02T03:04:30Z","expires_in_ms":24000,"grace_ms":500}]},
		{"position":2,"place":6,"mode":"exclusive","holder":"w2","joined_at":"2026-01-02T03:04:05Z","waited_ms":900,
			"attached":false,"place_kept_ms":9500,"ahead":1,"blocked_by":"disconnected","leases":[]}],
		"chain":{"steps":[{"name":"jobs:nightly","holder":"w1","waits_for":"r"},{"name":"b","holder":"r2","waits_for":"w3","ahead":true}],"end":"limit"}}`
	permitsJSON = `{"name":"jobs:nightly","state":"held","revision":7,"fencing_token":42,"as_of":"2026-01-02T03:04:06Z",
		"changed_at":"2026-01-02T03:04:05Z","capacity":3,"waiters":2,"leases":[{"slot":2,"mode":"permit","holder":"p",
		"fencing_token":42,"acquired_at":"2026-01-02T03:04:05Z","expires_at":"2026-01-02T03:04:35Z","expires_in_ms":29000,"grace_ms":0}]}`
	eventsJSON = `{"events":[
		{"id":8,"at":"2026-01-02T03:04:05Z","lock":"a","slot":0,"revision":5,"kind":"queued","mode":"shared","holder":"h","place":5},
		{"id":9,"at":"2026-01-02T03:04:05Z","lock":"a","slot":1,"revision":6,"kind":"granted","mode":"shared","holder":"h","place":5,
			"fencing_token":43}],"next_cursor":"9","gap":true}`
)

func second(n int) time.Time { return time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC) }

func TestAQueueFromTheWire(t *testing.T) {
	t.Parallel()
	got, err := over(t, saying(http.StatusOK, "application/json", queueJSON)).Queue(t.Context(), "jobs:nightly")
	if err != nil {
		t.Fatal(err)
	}
	want := lock.QueueInfo{Name: "jobs:nightly", Revision: 7, AsOf: second(6), Waiters: []lock.WaiterInfo{
		{Position: 1, Place: 5, Mode: lock.Permit, Capacity: 3, Holder: "w1", JoinedAt: second(5), Waited: time.Second,
			Attached: true, BlockedBy: lock.BlockedByHolders, Leases: []lock.LeaseInfo{{Slot: 1, Mode: lock.Shared, Holder: "r", Token: 41,
				AcquiredAt: second(0), ExpiresAt: second(30), Remaining: 24 * time.Second, Grace: 500 * time.Millisecond}}},
		{Position: 2, Place: 6, Mode: lock.Exclusive, Holder: "w2", JoinedAt: second(5), Waited: 900 * time.Millisecond,
			KeptFor: 9500 * time.Millisecond, BlockedBy: lock.BlockedByDisconnect, Leases: []lock.LeaseInfo{}, Ahead: 1},
	}, Chain: &lock.WaitChain{End: lock.ChainLimit, Steps: []lock.DeadlockStep{
		{Name: "jobs:nightly", Holder: "w1", WaitsFor: "r"}, {Name: "b", Holder: "r2", WaitsFor: "w3", Ahead: true}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the queue differs (-want +got):\n%s", diff)
	}
}

func TestALockThatSeveralHaveFromTheWire(t *testing.T) {
	t.Parallel()
	got, err := over(t, saying(http.StatusOK, "application/json", permitsJSON)).Lock(t.Context(), "jobs:nightly")
	if err != nil {
		t.Fatal(err)
	}
	want := lock.Lock{Name: "jobs:nightly", State: lock.Held, Revision: 7, Token: 42, ChangedAt: second(5), AsOf: second(6),
		Capacity: 3, Waiters: 2, Leases: []lock.LeaseInfo{{Slot: 2, Mode: lock.Permit, Holder: "p", Token: 42,
			AcquiredAt: second(5), ExpiresAt: second(35), Remaining: 29 * time.Second}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lock differs (-want +got):\n%s", diff)
	}
}

func TestEventsFromTheWire(t *testing.T) {
	t.Parallel()
	got, err := over(t, saying(http.StatusOK, "application/json", eventsJSON)).Events(t.Context(), lock.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	want := lock.Page[lock.Event]{Next: "9", Gap: true, Items: []lock.Event{
		{ID: 8, At: second(5), Name: "a", Revision: 5, Kind: lock.Queued, Mode: lock.Shared, Holder: "h", Place: 5},
		{ID: 9, At: second(5), Name: "a", Slot: 1, Revision: 6, Kind: lock.Granted, Mode: lock.Shared, Holder: "h", Place: 5, Token: 43},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the page differs (-want +got):\n%s", diff)
	}
}

func TestASlotOnTheWire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slot any
		ask  func(*client.Client) error
	}{
		"0 of a revocation is sent": {0.0, func(c *client.Client) error {
			_, err := c.Revoke(t.Context(), lock.Revoke{Name: "jobs:nightly", Token: 41, Slot: new(0), Reason: "r"})
			return err
		}},
		"none of a revocation is not": {nil, func(c *client.Client) error {
			_, err := c.Revoke(t.Context(), lock.Revoke{Name: "jobs:nightly", Token: 41, Reason: "r"})
			return err
		}},
		"that of a verification is sent": {7.0, func(c *client.Client) error {
			_, err := c.VerifyToken(t.Context(), lock.Verify{Name: "jobs:nightly", Token: 41, Slot: new(7)})
			return err
		}},
		"that of a fenced write is sent": {3.0, func(c *client.Client) error {
			_, err := c.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "a", Token: 41, Slot: 3, Value: []byte("1")})
			return err
		}},
		"0 of a fenced write is none": {nil, func(c *client.Client) error {
			_, err := c.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "a", Token: 41, Value: []byte("1")})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r request
			if err := c.ask(over(t, heard(&r, http.StatusOK, "{}"))); err == nil {
				t.Fatal("an empty object was taken for an answer")
			}
			if r.body["slot"] != c.slot {
				t.Errorf("sent %s, want the slot %v", r.text, c.slot)
			}
		})
	}
}
