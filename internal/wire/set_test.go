package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

const someSet = `{"lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","holder":"h","ttl_ms":30000,"grace_ms":2000,"max_hold_ms":60000,"expires_in_ms":29000,
	"acquired_at":"2026-01-02T03:04:05Z","expires_at":"2026-01-02T03:04:35Z","session":null,"metadata":{"x":1},"a_later_field":[{}],
	"locks":[{"name":"a","mode":"shared","slot":2,"fencing_token":41,"later":1},{"name":"b","mode":"exclusive","slot":0,"fencing_token":42}]}`

func TestAnswerAboutAnotherSetIsRefused(t *testing.T) {
	t.Parallel()
	asked := lock.Acquire{Locks: []lock.Member{{Name: "b"}, {Name: "a", Mode: lock.Shared}}, LeaseID: someID, Holder: "h"}
	if _, err := ParseLease([]byte(someSet), asked, time.Now()); err != nil {
		t.Fatal(err)
	}
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
		{Name: "a", Holder: "h", RetryAfter: 1500*time.Microsecond - time.Nanosecond, Suspect: true, Ahead: 2}, {Name: "b"},
	}}
	p := ProblemOf(e)
	text, err := json.Marshal(p.Blockers)
	if want := `[{"ahead":2,"holder":"h","name":"a","retry_after_ms":2,"suspect":true},{"name":"b","retry_after_ms":0}]`; err != nil || string(text) != want {
		t.Errorf("wrote %s, want %s: %v", text, want, err)
	}
	want := []lock.BlockedLock{{Name: "a", Holder: "h", RetryAfter: 2 * time.Millisecond, Suspect: true, Ahead: 2}, {Name: "b"}}
	if diff := cmp.Diff(want, ToError(p).Blocked); diff != "" {
		t.Error(diff)
	}
	p = ProblemOf(&lock.Error{Code: lock.ErrLeaseInSet, Set: []string{"a", "b"}})
	if diff := cmp.Diff([]string{"a", "b"}, ToError(p).Set); diff != "" {
		t.Error(diff)
	}
}
