package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// Calls about sets, and what they are by the types that come from yaml.
var setRequests = map[string]struct {
	call lock.Command
	want any
}{
	"an acquire": {
		lock.Acquire{Set: []lock.Member{{Name: "b"}, {Name: "a:b"}}, LeaseID: someID, Holder: "h"},
		api.AcquireSetRequest{Locks: []api.SetMember{{Name: "b"}, {Name: "a:b"}}, LeaseID: new(uuid.UUID(someID)), Holder: "h"}},
	"one that says all": {
		lock.Acquire{Set: []lock.Member{{Name: "a", Mode: lock.Permit, Capacity: 3}, {Name: "b", Mode: lock.Shared}}, LeaseID: someID, Holder: "<é>",
			TTL: time.Second, Grace: time.Second, MaxHold: time.Hour, Wait: time.Minute, KeepPlace: true, Metadata: json.RawMessage(`{"a":1}`)},
		api.AcquireSetRequest{Locks: []api.SetMember{{Name: "a", Mode: new(api.Permit), Capacity: new(3)}, {Name: "b", Mode: new(api.Shared)}},
			LeaseID: new(uuid.UUID(someID)), Holder: "<é>", TTLMs: new(int64(1000)), GraceMs: new(int64(1000)), MaxHoldMs: new(int64(3600000)),
			WaitMs: new(int64(60000)), KeepPlace: new(true), Metadata: json.RawMessage(`{"a":1}`)}},
	"one that the service refuses": {
		lock.Acquire{Set: []lock.Member{{Name: "\"\\\n", Mode: 7, Capacity: -1}, {}}, LeaseID: someID},
		api.AcquireSetRequest{Locks: []api.SetMember{{Name: "\"\\\n", Mode: new(api.Mode("unknown")), Capacity: new(-1)}, {}}, LeaseID: new(uuid.UUID(someID))}},
	"one of a session": {
		lock.Acquire{Set: []lock.Member{{Name: "a"}}, LeaseID: someID, Holder: "h", SessionID: lock.SessionID(someSession)},
		api.AcquireSetRequest{Locks: []api.SetMember{{Name: "a"}}, LeaseID: new(uuid.UUID(someID)), Holder: "h", SessionID: new(someSession)}},
	"a renewal": {
		lock.Renew{Set: []string{"b", "a"}, LeaseID: someID, TTL: time.Minute, Metadata: json.RawMessage(`{}`)},
		api.RenewSetRequest{Names: []string{"b", "a"}, LeaseID: uuid.UUID(someID), TTLMs: new(int64(60000)), Metadata: json.RawMessage(`{}`)}},
	"a release": {
		lock.Release{Set: []string{"b", "\"<"}, LeaseID: someID},
		api.ReleaseSetRequest{Names: []string{"b", "\"<"}, LeaseID: uuid.UUID(someID)}},
}

func TestSetRequestIsEncodedAsItsType(t *testing.T) {
	t.Parallel()
	for name, c := range setRequests {
		want, err := json.Marshal(c.want)
		if err != nil {
			t.Fatal(err)
		}
		text := AppendRequest(nil, c.call)
		if diff := cmp.Diff(members(t, want), members(t, text)); diff != "" {
			t.Errorf("%s: wrote %s, which differs (-want +got):\n%s", name, text, diff)
		}
	}
}

const someSet = `{"lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","holder":"h","ttl_ms":30000,"grace_ms":2000,"max_hold_ms":60000,"expires_in_ms":29000,
	"acquired_at":"2026-01-02T03:04:05Z","expires_at":"2026-01-02T03:04:35Z","session":null,"metadata":{"x":1},"a_later_field":[{}],
	"locks":[{"name":"a","mode":"shared","slot":2,"fencing_token":41,"later":1},{"name":"b","mode":"exclusive","slot":0,"fencing_token":42}]}`

func askedSet() lock.Acquire {
	return lock.Acquire{Set: []lock.Member{{Name: "b"}, {Name: "a", Mode: lock.Shared}}, LeaseID: someID, Holder: "h"}
}

func TestSetIsReadAsItWasEncoded(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	got, err := ParseLease([]byte(someSet), askedSet(), sent)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := lock.Lease{
		ID: someID, Name: "a", Slot: 2, Mode: lock.Shared, Holder: "h", Token: 41, TTL: 30 * time.Second, Grace: 2 * time.Second,
		MaxHold: time.Minute, AcquiredAt: at, ExpiresAt: at.Add(30 * time.Second), Metadata: json.RawMessage(`{"x":1}`), Set: []string{"a", "b"},
	}
	second := first
	second.Name, second.Slot, second.Mode, second.Token = "b", 0, lock.Exclusive, 42
	want := lock.Grant{Lease: first, Members: []lock.Lease{first, second}, Until: sent.Add(29 * time.Second)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text, err := Encode(LeaseSetOf(got))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseLease(text, lock.Renew{Set: []string{"b", "a"}, LeaseID: someID}, sent)
	if diff := cmp.Diff(want.Members, again.Members); err != nil || diff != "" || again.Until.After(want.Until) {
		t.Errorf("%s was read as %+v: %v, %s", text, again, err, diff)
	}
}

// TestSetOfOneHasNoMembers encodes and reads the grant of one lock.
func TestSetOfOneHasNoMembers(t *testing.T) {
	t.Parallel()
	one := lock.Lease{ID: someID, Name: "a", Mode: lock.Permit, Slot: 3, Holder: "h", Token: 41, TTL: time.Minute}
	text, err := Encode(LeaseSetOf(lock.Grant{Lease: one, Until: time.Now().Add(time.Minute)}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseLease(text, lock.Acquire{Set: []lock.Member{{Name: "a"}}, LeaseID: someID}, time.Now())
	if err != nil || got.Members != nil || got.Set != nil || got.Name != "a" || got.Slot != 3 || got.Token != 41 {
		t.Errorf("%s was read as %+v, %v", text, got, err)
	}
}

func TestAnswerAboutAnotherSetIsRefused(t *testing.T) {
	t.Parallel()
	asked := askedSet()
	for name, text := range map[string]string{
		"nothing":                ``,
		"null":                   `null`,
		"one lease":              someLease,
		"no locks":               strings.Replace(someSet, `"locks"`, `"lockz"`, 1),
		"an empty list":          someSet[:strings.Index(someSet, `[{"name"`)] + `[]}`,
		"another lock":           strings.Replace(someSet, `"name":"b"`, `"name":"c"`, 1),
		"a lock twice":           strings.Replace(someSet, `"name":"b"`, `"name":"a"`, 1),
		"a lock less":            someSet[:strings.Index(someSet, `,{"name":"b"`)] + `]}`,
		"another order":          strings.NewReplacer(`"name":"b"`, `"name":"a"`, `"name":"a"`, `"name":"b"`).Replace(someSet),
		"another lease_id":       strings.Replace(someSet, "5e0c", "5e0d", 1),
		"a session":              strings.Replace(someSet, `"session":null`, `"session":"7bb9f2a32ab6969f"`, 1),
		"a lock without a token": strings.Replace(someSet, `"fencing_token":42`, `"token":42`, 1),
		"locks that are text":    strings.Replace(someSet, `{"name":"a"`, `"a",{"name":"a"`, 1),
	} {
		if got, err := ParseLease([]byte(text), asked, time.Now()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

func TestBlockedLocksAreReadAsTheyWereEncoded(t *testing.T) {
	t.Parallel()
	e := &lock.Error{Code: lock.ErrHeld, Detail: "D.", Blocked: []lock.BlockedLock{
		{Name: "a", Holder: "h", RetryAfter: 1500*time.Microsecond - time.Nanosecond, Ahead: 2}, {Name: "b"},
	}}
	p := ProblemOf(e)
	text, err := json.Marshal(p.Blockers)
	if want := `[{"ahead":2,"holder":"h","name":"a","retry_after_ms":2},{"name":"b","retry_after_ms":0}]`; err != nil || string(text) != want {
		t.Errorf("wrote %s, want %s: %v", text, want, err)
	}
	want := []lock.BlockedLock{{Name: "a", Holder: "h", RetryAfter: 2 * time.Millisecond, Ahead: 2}, {Name: "b"}}
	if diff := cmp.Diff(want, ToError(p).Blocked); diff != "" {
		t.Error(diff)
	}
	p = ProblemOf(&lock.Error{Code: lock.ErrLeaseInSet, Set: []string{"a", "b"}})
	if diff := cmp.Diff([]string{"a", "b"}, ToError(p).Set); diff != "" {
		t.Error(diff)
	}
}

// TestViewsHaveTheSet encodes a lease and a waiter of a set, and those of one lock.
func TestViewsHaveTheSet(t *testing.T) {
	t.Parallel()
	for _, set := range [][]string{nil, {"a", "b"}} {
		l := lock.LeaseInfo{Mode: lock.Exclusive, Set: set}
		if got := toLeaseInfo(leaseInfoOf(l)); !cmp.Equal(got.Set, set) {
			t.Errorf("the lease has the set %q, want %q", got.Set, set)
		}
		w := lock.WaiterInfo{Mode: lock.Exclusive, Set: set, Leases: []lock.LeaseInfo{l}}
		if got := toWaiter(waiterOf(w)); !cmp.Equal(got.Set, set) || !cmp.Equal(got.Leases[0].Set, set) {
			t.Errorf("the waiter has the set %q, want %q", got.Set, set)
		}
		text, err := json.Marshal(waiterOf(w))
		if has := strings.Contains(string(text), `"set"`); err != nil || has != (set != nil) {
			t.Errorf("%q became %s, %v", set, text, err)
		}
	}
}
