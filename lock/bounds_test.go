package lock_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A bound is something that callers may send, and the field at fault, if one is.
type bound struct {
	name  string
	err   error
	field string // empty: it is allowed
}

func (b bound) check(t *testing.T) {
	t.Parallel()
	e := new(lock.Error)
	switch {
	case b.field == "" && b.err != nil:
		t.Errorf("refused: %v", b.err)
	case b.field != "" && (!errors.As(b.err, &e) || e.Code != lock.ErrInvalid || e.Field != b.field):
		t.Errorf("err = %v, want ErrInvalid for %s", b.err, b.field)
	}
}

func widestBounds(t *testing.T) lock.Bounds {
	t.Helper()
	b, err := lock.Bounds{}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBoundsOfAnAcquire(t *testing.T) {
	t.Parallel()
	bounds := widestBounds(t)
	with := func(change func(*lock.Acquire)) error {
		a := lock.Acquire{Name: "a", Holder: "h"}
		change(&a)
		_, err := a.Resolve(bounds)
		return err
	}
	for _, b := range []bound{
		{"the least there is to say", with(func(*lock.Acquire) {}), ""},
		{"a name of 200", with(func(a *lock.Acquire) { a.Name = strings.Repeat("n", 200) }), ""},
		{"a name of 201", with(func(a *lock.Acquire) { a.Name = strings.Repeat("n", 201) }), "name"},
		{"a name with a slash", with(func(a *lock.Acquire) { a.Name = "a/b" }), "name"},
		{"no holder", with(func(a *lock.Acquire) { a.Holder = "" }), "holder"},
		{"a holder of 200 characters", with(func(a *lock.Acquire) { a.Holder = strings.Repeat("é", 200) }), ""},
		{"a holder of 201 characters", with(func(a *lock.Acquire) { a.Holder = strings.Repeat("é", 201) }), "holder"},
		{"a holder with a control character", with(func(a *lock.Acquire) { a.Holder = "a\nb" }), "holder"},
		{"a holder that is not UTF-8", with(func(a *lock.Acquire) { a.Holder = "\xff" }), "holder"},
		{"the shortest TTL", with(func(a *lock.Acquire) { a.TTL = lock.MinTTL }), ""},
		{"a TTL below the shortest", with(func(a *lock.Acquire) { a.TTL = lock.MinTTL - 1 }), "ttl_ms"},
		{"the longest TTL", with(func(a *lock.Acquire) { a.TTL = lock.MaxTTL }), ""},
		{"a TTL above the longest", with(func(a *lock.Acquire) { a.TTL = lock.MaxTTL + 1 }), "ttl_ms"},
		{"a negative TTL", with(func(a *lock.Acquire) { a.TTL = -1 }), "ttl_ms"},
		{"a TTL without end", with(func(a *lock.Acquire) { a.TTL = math.MaxInt64 }), "ttl_ms"},
		{"a negative grace", with(func(a *lock.Acquire) { a.Grace = -1 }), "grace_ms"},
		{"a grace above the longest", with(func(a *lock.Acquire) { a.Grace = lock.MaxGrace + 1 }), "grace_ms"},
		{"a greatest hold below the shortest TTL", with(func(a *lock.Acquire) { a.MaxHold = 1 }), "max_hold_ms"},
		{"a greatest hold above the longest", with(func(a *lock.Acquire) { a.MaxHold = lock.MaxHold + 1 }), "max_hold_ms"},
		{"a mode that is none", with(func(a *lock.Acquire) { a.Mode = 77 }), "mode"},
		{"metadata of 4096 bytes", with(func(a *lock.Acquire) { a.Metadata = object(4096) }), ""},
		{"metadata of 4097 bytes", with(func(a *lock.Acquire) { a.Metadata = object(4097) }), "metadata"},
		{"metadata that is no object", with(func(a *lock.Acquire) { a.Metadata = json.RawMessage(`[1]`) }), "metadata"},
		{"metadata that is null", with(func(a *lock.Acquire) { a.Metadata = json.RawMessage(`null`) }), "metadata"},
	} {
		t.Run(b.name, b.check)
	}
}

func TestBoundsOfWaitingAndModes(t *testing.T) {
	t.Parallel()
	bounds := widestBounds(t)
	with := func(change func(*lock.Acquire)) error {
		a := lock.Acquire{Name: "a", Holder: "h"}
		change(&a)
		_, err := a.Resolve(bounds)
		return err
	}
	write := lock.FencedWrite{Key: "k", Lock: "a", Token: 1, Value: object(2)}
	for _, b := range []bound{
		{"the longest wait", with(func(a *lock.Acquire) { a.Wait = lock.MaxWait }), ""},
		{"a wait above the longest", with(func(a *lock.Acquire) { a.Wait = lock.MaxWait + 1 }), "wait_ms"},
		{"a negative wait", with(func(a *lock.Acquire) { a.Wait = -1 }), "wait_ms"},
		{"a shared lease", with(shared), ""},
		{"one permit", with(permit(1)), ""},
		{"as many permits as there can be", with(permit(lock.MaxHolders)), ""},
		{"a permit more", with(permit(lock.MaxHolders + 1)), "capacity"},
		{"no permit", with(permit(0)), "capacity"},
		{"fewer permits than none", with(permit(-1)), "capacity"},
		{"a capacity of an exclusive lease", with(func(a *lock.Acquire) { a.Capacity = 1 }), "capacity"},
		{"a capacity of a shared lease", with(func(a *lock.Acquire) { shared(a); a.Capacity = 1 }), "capacity"},
		{"a negative mode", with(func(a *lock.Acquire) { a.Mode = -1 }), "mode"},
		{"revoking the greatest slot", errOf(lock.Revoke{Name: "a", Token: 1, Reason: "r", Slot: slot(lock.MaxHolders)}.Resolve()), ""},
		{"revoking a slot beyond", errOf(lock.Revoke{Name: "a", Token: 1, Reason: "r", Slot: slot(lock.MaxHolders + 1)}.Resolve()), "slot"},
		{"verifying slot 0", errOf(lock.Verify{Name: "a", Token: 1, Slot: slot(0)}.Resolve()), ""},
		{"verifying a negative slot", errOf(lock.Verify{Name: "a", Token: 1, Slot: slot(-1)}.Resolve()), "slot"},
		{"a fenced write of no slot", errOf(write.Resolve()), ""},
		{"a fenced write of a negative slot", errOf(func() lock.FencedWrite { w := write; w.Slot = -1; return w }().Resolve()), "slot"},
		{"watching for as long as may be", errOf(lock.Watch{Name: "a", Seen: "1", Wait: lock.MaxWait}.Resolve()), ""},
		{"watching for longer", errOf(lock.Watch{Name: "a", Wait: lock.MaxWait + 1}.Resolve()), "wait_ms"},
		{"watching a bad name", errOf(lock.Watch{Name: "/"}.Resolve()), "name"},
		{"waiting for events", errOf(lock.EventQuery{Wait: lock.MaxWait, Cursor: lock.CursorNow}.Resolve()), ""},
		{"waiting longer for events", errOf(lock.EventQuery{Wait: lock.MaxWait + 1}.Resolve()), "wait_ms"},
	} {
		t.Run(b.name, b.check)
	}
}

func TestModesAndKindsHaveNames(t *testing.T) {
	t.Parallel()
	for m := lock.Exclusive; m <= lock.Permit; m++ {
		if lock.ModeOf(m.String()) != m {
			t.Errorf("mode %d is called %q, which is mode %d", m, m, lock.ModeOf(m.String()))
		}
	}
	for k := lock.Granted; k <= lock.Withdrawn; k++ {
		if lock.KindOf(k.String()) != k {
			t.Errorf("kind %d is called %q, which is kind %d", k, k, lock.KindOf(k.String()))
		}
	}
	if lock.ModeOf("unknown") != 0 || lock.KindOf("unknown") != 0 || lock.Mode(99).String() != "unknown" || lock.Kind(-1).String() != "unknown" {
		t.Error("what is no mode and no kind has another name than unknown")
	}
}

func TestBoundsOfTheRest(t *testing.T) {
	t.Parallel()
	bounds := widestBounds(t)
	version := int64(-1)
	for _, b := range []bound{
		{"a renewal without lease_id", errOf(lock.Renew{Name: "a"}.Resolve(bounds)), "lease_id"},
		{"a renewal with a bad TTL", errOf(lock.Renew{Name: "a", LeaseID: id(1), TTL: 1}.Resolve(bounds)), "ttl_ms"},
		{"a release without lease_id", errOf(lock.Release{Name: "a"}.Resolve()), "lease_id"},
		{"a revocation without token", errOf(lock.Revoke{Name: "a", Reason: "r"}.Resolve()), "fencing_token"},
		{"a revocation with a token above 2⁵³−1", errOf(lock.Revoke{Name: "a", Token: lock.MaxToken + 1, Reason: "r"}.Resolve()), "fencing_token"},
		{"a revocation without reason", errOf(lock.Revoke{Name: "a", Token: 1}.Resolve()), "reason"},
		{"a fenced write to a bad key", errOf(lock.FencedWrite{Key: "/", Lock: "a", Token: 1, Value: object(2)}.Resolve()), "key"},
		{"a fenced write with a bad lock", errOf(lock.FencedWrite{Key: "k", Token: 1, Value: object(2)}.Resolve()), "lock"},
		{"a fenced write of what is not JSON", errOf(lock.FencedWrite{Key: "k", Lock: "a", Token: 1, Value: json.RawMessage(`{`)}.Resolve()), "value"},
		{"a fenced write at a negative version", errOf(lock.FencedWrite{Key: "k", Lock: "a", Token: 1, Value: object(2), IfVersion: &version}.Resolve()), "if_version"},
		{"a page of 1000", errOf(lock.LockQuery{Limit: 1000}.Resolve()), ""},
		{"a page of 1001", errOf(lock.LockQuery{Limit: 1001}.Resolve()), "limit"},
		{"a page of -1", errOf(lock.EventQuery{Limit: -1}.Resolve()), "limit"},
		{"a state that is none", errOf(lock.LockQuery{State: "busy"}.Resolve()), "state"},
		{"a bad prefix", errOf(lock.LockQuery{Prefix: "%"}.Resolve()), "prefix"},
		{"events of a lock and of a prefix", errOf(lock.EventQuery{Name: "a", Prefix: "b"}.Resolve()), "prefix"},
		{"verifying no token", errOf(lock.Verify{Name: "a"}.Resolve()), "fencing_token"},
	} {
		t.Run(b.name, b.check)
	}
}

func errOf[T any](_ T, err error) error { return err }

// object returns a JSON object of n bytes.
func object(n int) json.RawMessage {
	if n == 2 {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(`{"a":"` + strings.Repeat("x", n-8) + `"}`)
}

func TestBoundsOfADeployment(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		bounds lock.Bounds
		ok     bool
	}{
		{"nothing set allows the widest", lock.Bounds{}, true},
		{"narrower than the usual TTL", lock.Bounds{MaxTTL: time.Second}, true},
		{"no grace", lock.Bounds{MaxGrace: -1}, true},
		{"a TTL below what there can be", lock.Bounds{MinTTL: time.Millisecond}, false},
		{"a TTL above what there can be", lock.Bounds{MaxTTL: 25 * time.Hour}, false},
		{"a grace above what there can be", lock.Bounds{MaxGrace: time.Hour}, false},
		{"one waiter", lock.Bounds{MaxWaiters: 1}, true},
		{"fewer waiters than none", lock.Bounds{MaxWaiters: -1}, false},
		{"least above greatest", lock.Bounds{MinTTL: time.Minute, MaxTTL: time.Second}, false},
		{"a default outside", lock.Bounds{DefaultTTL: time.Hour, MaxTTL: time.Minute}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, err := c.bounds.Resolve()
			if (err == nil) != c.ok {
				t.Errorf("err = %v", err)
			}
			if err == nil && (b.DefaultTTL < b.MinTTL || b.DefaultTTL > b.MaxTTL || b.MaxGrace < 0 || b.MaxWaiters < 1) {
				t.Errorf("resolved to %+v", b)
			}
		})
	}
}
