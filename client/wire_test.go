package client_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// Acquires, and what is sent of each beside the lease_id.
var acquires = map[string]struct {
	acquire lock.Acquire
	want    string
}{
	"leaves out what is not given": {
		lock.Acquire{Holder: "h"}, `{"holder":"h"}`},
	"says everything that is given": {
		lock.Acquire{
			Holder: "h", Locks: []lock.Member{{Name: "jobs:nightly", Mode: lock.Exclusive}}, TTL: time.Second, Grace: 2 * time.Second,
			MaxHold: time.Minute, Metadata: json.RawMessage(`{"a":1}`),
		},
		`{"grace_ms":2000,"holder":"h","max_hold_ms":60000,"metadata":{"a":1},"mode":"exclusive","ttl_ms":1000}`},
	"rounds durations down": {
		lock.Acquire{Holder: "h", TTL: 1999*time.Microsecond + 100*time.Millisecond}, `{"holder":"h","ttl_ms":101}`},
	"never sends a TTL below a millisecond as none": {
		lock.Acquire{Holder: "h", TTL: time.Nanosecond, Grace: -time.Nanosecond}, `{"grace_ms":-1,"holder":"h","ttl_ms":1}`},
	"leaves metadata as long as it is": {
		lock.Acquire{Holder: "<&>", Metadata: json.RawMessage(`{"a":"<&>"}`)}, `{"holder":"<&>","metadata":{"a":"<&>"}}`},
	"says for how long to wait, and that the place is to be kept": {
		lock.Acquire{Holder: "h", Locks: []lock.Member{{Name: "jobs:nightly", Mode: lock.Shared}}, Wait: 30 * time.Second, KeepPlace: true},
		`{"holder":"h","keep_place":true,"mode":"shared","wait_ms":30000}`},
	"says how many permits there are": {
		lock.Acquire{Holder: "h", Locks: []lock.Member{{Name: "jobs:nightly", Mode: lock.Permit, Capacity: 3}}}, `{"capacity":3,"holder":"h","mode":"permit"}`},
	"sends a wait and a capacity that are none for the service to refuse": {
		lock.Acquire{Holder: "h", Wait: -time.Nanosecond, Locks: []lock.Member{{Name: "jobs:nightly", Capacity: -1}}}, `{"capacity":-1,"holder":"h","wait_ms":-1}`},
	"sends the session, and no times of its own": {
		lock.Acquire{Holder: "h", Locks: []lock.Member{{Name: "jobs:nightly", Mode: lock.Shared}}, SessionID: sessionID},
		`{"holder":"h","mode":"shared","session_id":"` + leaseText + `"}`},
	"says that the work needs to be done only once": {
		lock.Acquire{Holder: "h", Once: true}, `{"holder":"h","once":true}`},
	"leaves out who serves the call": {
		lock.Acquire{Holder: "h", Attachment: 7, Replica: 8}, `{"holder":"h"}`},
	"sends a mode that is none for the service to refuse": {
		lock.Acquire{Holder: "h", Locks: []lock.Member{{Name: "jobs:nightly", Mode: 7}}}, `{"holder":"h","mode":"unknown"}`},
}

func TestAnAcquireOnTheWire(t *testing.T) {
	t.Parallel()
	for name, c := range acquires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r request
			if c.acquire.LeaseID = leaseID; c.acquire.Locks == nil {
				c.acquire.Locks = lock.One("jobs:nightly")
			}
			granted := leaseJSON
			if ref := c.acquire.SessionID.Ref(); ref != 0 {
				granted = strings.TrimSuffix(granted, "}") + `,"session":"` + ref.String() + `"}`
			}
			if _, err := over(t, heard(&r, http.StatusCreated, granted)).Acquire(t.Context(), c.acquire); err != nil {
				t.Fatal(err)
			}
			got := strings.Replace(r.text, `"lease_id":"`+leaseText+`",`, "", 1)
			got = strings.Replace(got, `,"lease_id":"`+leaseText+`"`, "", 1)
			if got != c.want {
				t.Errorf("sent %s, want %s and the lease_id", got, c.want)
			}
		})
	}
}

func TestAnAcquireWithoutLeaseIDSendsOneOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[any]bool{}
	for range 3 {
		var r request
		_, err := over(t, heard(&r, http.StatusConflict, "{}")).Acquire(t.Context(), lock.Acquire{Locks: lock.One("n"), Holder: "h"})
		if err == nil {
			t.Fatal("a bare 409 was taken for a lease")
		}
		if id, ok := r.body["lease_id"].(string); !ok || len(id) != 36 || id[14] != '4' || seen[id] {
			t.Errorf("sent the lease_id %v, want a new UUID of version 4", r.body["lease_id"])
		}
		seen[r.body["lease_id"]] = true
	}
}

func TestALeaseFromTheWire(t *testing.T) {
	t.Parallel()
	got, err := acquire(over(t, saying(http.StatusCreated, "application/json; charset=utf-8", leaseJSON)), t)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	want := lock.Grant{Lease: lock.Lease{
		ID: leaseID, Name: "jobs:nightly", Slot: 2, Mode: lock.Shared, Holder: "worker-1", Token: 41,
		TTL: 30 * time.Second, Grace: 2 * time.Second, MaxHold: time.Minute,
		AcquiredAt: at, ExpiresAt: at.Add(30 * time.Second), Metadata: json.RawMessage(`{"host":"db-3"}`),
	}}
	want.Leases = []lock.Lease{want.Lease}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(lock.Grant{}, "Until")); diff != "" {
		t.Errorf("the grant differs (-want +got):\n%s", diff)
	}
}

func TestAnAcquireAnswered200IsAReplay(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{http.StatusCreated: false, http.StatusOK: true} {
		got, err := acquire(over(t, saying(status, "application/json", leaseJSON)), t)
		if err != nil {
			t.Fatal(err)
		}
		if got.Replayed != want {
			t.Errorf("status %d: Replayed is %v", status, got.Replayed)
		}
	}
	renewed, err := over(t, saying(http.StatusOK, "application/json", leaseJSON)).
		Renew(t.Context(), lock.Renew{Locks: []string{"jobs:nightly"}, LeaseID: leaseID})
	if err != nil {
		t.Fatal(err)
	}
	if renewed.Replayed {
		t.Error("a renewal is no replay")
	}
}

func TestAJSONNullIsAValue(t *testing.T) {
	t.Parallel()
	got, err := over(t, saying(http.StatusOK, "application/json", fencedJSON)).ReadFenced(t.Context(), "accounts:42")
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Value) != "null" {
		t.Errorf("the value is %q, want null", got.Value)
	}
}

func TestQueriesSayOnlyWhatIsAsked(t *testing.T) {
	t.Parallel()
	const page = `{"locks":[],"events":[],"sessions":[],"next_cursor":"n"}`
	for want, ask := range map[string]func(paddock.Service) error{
		"/v1/locks": func(s paddock.Service) error {
			_, err := s.Locks(t.Context(), paddock.LockQuery{})
			return err
		},
		"/v1/locks?prefix=a%3A&state=held&holder=me+%26+you%2C+%C3%A9&limit=7&cursor=x%2By": func(s paddock.Service) error {
			_, err := s.Locks(t.Context(), paddock.LockQuery{
				Prefix: "a:", State: lock.Held, Holder: "me & you, é", Limit: 7, Cursor: "x+y"})
			return err
		},
		"/v1/sessions": func(s paddock.Service) error {
			_, err := s.Sessions(t.Context(), paddock.SessionQuery{})
			return err
		},
		"/v1/sessions?holder=me+%26+you&limit=7&cursor=x%2By": func(s paddock.Service) error {
			_, err := s.Sessions(t.Context(), paddock.SessionQuery{Holder: "me & you", Limit: 7, Cursor: "x+y"})
			return err
		},
		"/v1/events?lock=a&prefix=b&limit=-1&cursor=c": func(s paddock.Service) error {
			_, err := s.Events(t.Context(), paddock.EventQuery{Names: []string{"a"}, Prefix: "b", Limit: -1, Cursor: "c"})
			return err
		},
		"/v1/events?cursor=now&wait_ms=50000": func(s paddock.Service) error {
			_, err := s.Events(t.Context(), paddock.EventQuery{Cursor: paddock.CursorNow, Wait: lock.MaxWait})
			return err
		},
	} {
		var r request
		if err := ask(over(t, heard(&r, http.StatusOK, page))); err != nil {
			t.Fatal(err)
		}
		if r.uri != want {
			t.Errorf("asked for %s, want %s", r.uri, want)
		}
		if got := r.header.Get("User-Agent"); got != "paddock-go" {
			t.Errorf("the user agent is %q", got)
		}
	}
}
