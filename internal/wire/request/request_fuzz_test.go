package request

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"holder": "a"}`, `{"lease_id": "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"}`, `{"holder": "a", "metadata": {"x": [null, 1e400]}}`,
		`{"holder": "a", "mode": "permit", "capacity": 3, "wait_ms": 30000, "keep_place": true}`,
		`{"lock": "a", "fencing_token": 1, "value": null, "if_version": 0}`, `{"fencing_token": 9007199254740992, "reason": "r"}`,
		`{"session_id": "7c1b7e5a-3d0f-4a55-9d27-6d0a2b1c9e44", "holder": "a", "grace_ms": 0}`, `{"reason": "r", "skip_grace": true}`,
		`{"holder": "a", "locks": [{"name": "a"}, {"name": "b", "mode": "permit", "capacity": 3}], "wait_ms": 1}`,
		`{"holder": "a", "locks": [{"name": "a", "name": "b"}, {"a/b~%d": 1}, 1, null, [[{}]]]}`, `{"holder": "a", "locks": {}}`,
		`{"lease_id": "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11", "names": ["a", "b"]}`, `{"names": ["a", 1, {"b": [}]}`,
		`{"lease_id": "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11", "closed_ms": 1e9, "once_per": "day", "time_zone": "Europe/Berlin"}`,
		`{"reason": "r", "for_ms": 0}`, `{"max_ttl_ms": 1000, "capacity": 3, "max_leases": 1}`, `{"holder": null}`, `{"a": 1, "a": 2}`, `{"\u0061": 1}`, `{"": 1}`, `[]`, `null`, ``, `{`, `{}x`, `{"value": [[[[]]]]}`, "{\"\xff\": 1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := Read[Acquire]("a", body)
		checkDecoded(t, body, err, "holder")
		if err == nil {
			var sent api.AcquireRequest
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatalf("accepted %q: %v", body, err)
			}
			checkTime(t, a.TTL, sent.TTLMs)
			checkTime(t, a.Wait, sent.WaitMs)
		}
		_, err = Read[Renew]("a", body)
		checkDecoded(t, body, err, "lease_id")
		_, err = Read[Release]("a", body)
		checkDecoded(t, body, err, "lease_id")
		_, err = Read[Revoke]("a", body)
		checkDecoded(t, body, err, "fencing_token", "reason")
		checkSets(t, body)
		_, err = Read[OpenSession]("", body)
		checkDecoded(t, body, err, "holder")
		_, err = Read[RenewSession]("", body)
		checkDecoded(t, body, err, "session_id")
		_, err = Read[CloseSession]("", body)
		checkDecoded(t, body, err, "session_id")
		_, err = Read[RevokeSession]("7bb9f2a32ab6969f", body)
		checkDecoded(t, body, err, "reason")
		_, err = Read[Freeze]("a:", body)
		checkDecoded(t, body, err, "reason")
		_, err = Read[Rule]("a:", body)
		checkDecoded(t, body, err)
		_, err = Read[Verify]("", body)
		checkDecoded(t, body, err, "name", "fencing_token")
		write, err := Read[FencedWrite]("a", body)
		checkDecoded(t, body, err, "lock", "fencing_token", "value")
		if err == nil && !json.Valid(write.Value) {
			t.Errorf("value %q is not JSON", write.Value)
		}
	})
}

// checkSets decodes the body as each call about a set, and checks that an accepted one has all locks as they were
// sent.
func checkSets(t *testing.T, body []byte) {
	t.Helper()
	a, err := Read[AcquireSet]("", body)
	checkDecoded(t, body, err, "holder", "locks")
	if err == nil {
		var sent api.AcquireSetRequest
		if err := json.Unmarshal(body, &sent); err != nil || len(sent.Locks) != len(a.Locks) || len(a.Locks) == 0 {
			t.Fatalf("accepted %q as %+v: %v", body, a, err)
		}
		for i, m := range sent.Locks {
			if a.Locks[i].Name != m.Name || a.Locks[i].Capacity != wire.ValueOf(m.Capacity) ||
				a.Locks[i].Permits != wire.ValueOf(m.Permits) || (a.Locks[i].Mode == 0) != (m.Mode == nil) {
				t.Errorf("lock %d of %q became %+v", i, body, a.Locks[i])
			}
		}
	}
	renewed, err := Read[RenewSet]("", body)
	checkNames(t, body, renewed.Locks, err)
	released, err := Read[ReleaseSet]("", body)
	checkNames(t, body, released.Locks, err)
}

// checkNames checks that the accepted body of a renewal or a release has these names.
func checkNames(t *testing.T, body []byte, names []string, err error) {
	t.Helper()
	checkDecoded(t, body, err, "lease_id", "names")
	var sent api.RenewSetRequest
	if err != nil {
		return
	}
	if err := json.Unmarshal(body, &sent); err != nil || len(names) == 0 || !slices.Equal(sent.Names, names) {
		t.Errorf("accepted %q as %q: %v", body, names, err)
	}
}

// checkDecoded checks that an accepted body is an object with these members to the lenient decoder of the standard
// library, too.
func checkDecoded(t *testing.T, body []byte, err error, required ...string) {
	t.Helper()
	if err != nil {
		checkInvalid(t, err)
		return
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatalf("accepted %q: %v", body, err)
	}
	for _, name := range required {
		if _, ok := object[name]; !ok {
			t.Errorf("accepted %q without %s", body, name)
		}
	}
}

// checkInvalid checks that an error is ErrInvalid, in whole sentences.
func checkInvalid(t *testing.T, err error) {
	t.Helper()
	var e *lock.Error
	if err != nil && (!errors.As(err, &e) || e.Code != lock.ErrInvalid || !strings.HasSuffix(e.Detail, ".")) {
		t.Errorf("refused with %#v", err)
	}
}

// checkTime checks that a duration did not overflow.
func checkTime(t *testing.T, d time.Duration, ms *int64) {
	t.Helper()
	if ms != nil && (*ms > 0) != (d > 0) {
		t.Errorf("%d ms became %v", *ms, d)
	}
}
