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

// A bound is the result of checking a request, and the field that must be invalid.
type bound struct {
	name  string
	err   error
	field string // empty: none
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

func TestAcquireBounds(t *testing.T) {
	t.Parallel()
	bounds := widestBounds(t)
	with := func(change func(*lock.Acquire)) error {
		a := lock.Acquire{Locks: lock.One("a"), Holder: "h"}
		change(&a)
		_, err := a.Resolve(bounds)
		return err
	}
	for _, b := range []bound{
		{"only the required fields", with(func(*lock.Acquire) {}), ""},
		{"a name of 200", with(func(a *lock.Acquire) { a.Locks[0].Name = strings.Repeat("n", 200) }), ""},
		{"a name of 201", with(func(a *lock.Acquire) { a.Locks[0].Name = strings.Repeat("n", 201) }), "name"},
		{"a name with a slash", with(func(a *lock.Acquire) { a.Locks[0].Name = "a/b" }), "name"},
		{"no holder", with(func(a *lock.Acquire) { a.Holder = "" }), "holder"},
		{"a holder of 200 characters", with(func(a *lock.Acquire) { a.Holder = strings.Repeat("é", 200) }), ""},
		{"a holder of 201 characters", with(func(a *lock.Acquire) { a.Holder = strings.Repeat("é", 201) }), "holder"},
		{"a holder with a control character", with(func(a *lock.Acquire) { a.Holder = "a\nb" }), "holder"},
		{"a holder that is not UTF-8", with(func(a *lock.Acquire) { a.Holder = "\xff" }), "holder"},
		{"the minimum TTL", with(func(a *lock.Acquire) { a.TTL = lock.MinTTL }), ""},
		{"a TTL below the minimum", with(func(a *lock.Acquire) { a.TTL = lock.MinTTL - 1 }), "ttl_ms"},
		{"the maximum TTL", with(func(a *lock.Acquire) { a.TTL = lock.MaxTTL }), ""},
		{"a TTL above the maximum", with(func(a *lock.Acquire) { a.TTL = lock.MaxTTL + 1 }), "ttl_ms"},
		{"a negative TTL", with(func(a *lock.Acquire) { a.TTL = -1 }), "ttl_ms"},
		{"an infinite TTL", with(func(a *lock.Acquire) { a.TTL = math.MaxInt64 }), "ttl_ms"},
		{"a negative grace", with(func(a *lock.Acquire) { a.Grace = -1 }), "grace_ms"},
		{"a grace above the maximum", with(func(a *lock.Acquire) { a.Grace = lock.MaxGrace + 1 }), "grace_ms"},
		{"a max hold below the minimum TTL", with(func(a *lock.Acquire) { a.MaxHold = 1 }), "max_hold_ms"},
		{"a max hold above the maximum", with(func(a *lock.Acquire) { a.MaxHold = lock.MaxHold + 1 }), "max_hold_ms"},
		{"an invalid mode", with(func(a *lock.Acquire) { a.Locks[0].Mode = 77 }), "mode"},
		{"metadata of 4096 bytes", with(func(a *lock.Acquire) { a.Metadata = object(4096) }), ""},
		{"metadata of 4097 bytes", with(func(a *lock.Acquire) { a.Metadata = object(4097) }), "metadata"},
		{"metadata that is not an object", with(func(a *lock.Acquire) { a.Metadata = json.RawMessage(`[1]`) }), "metadata"},
		{"metadata that is null", with(func(a *lock.Acquire) { a.Metadata = json.RawMessage(`null`) }), "metadata"},
	} {
		t.Run(b.name, b.check)
	}
}

func TestWaitAndModeBounds(t *testing.T) {
	t.Parallel()
	bounds := widestBounds(t)
	with := func(change func(*lock.Acquire)) error {
		a := lock.Acquire{Locks: lock.One("a"), Holder: "h"}
		change(&a)
		_, err := a.Resolve(bounds)
		return err
	}
	write := lock.FencedWrite{Key: "k", Lock: "a", Token: 1, Value: object(2)}
	longestTask := lock.TaskID(strings.Repeat("t", lock.MaxTaskIDLength))
	for _, b := range []bound{
		{"the maximum wait", with(func(a *lock.Acquire) { a.Wait = lock.MaxWait }), ""},
		{"a wait above the maximum", with(func(a *lock.Acquire) { a.Wait = lock.MaxWait + 1 }), "wait_ms"},
		{"a negative wait", with(func(a *lock.Acquire) { a.Wait = -1 }), "wait_ms"},
		{"a shared lease", with(shared), ""},
		{"one permit", with(permit(1)), ""},
		{"the maximum number of permits", with(permit(lock.MaxHolders)), ""},
		{"one permit too many", with(permit(lock.MaxHolders + 1)), "capacity"},
		{"a capacity that is left to a rule", with(permit(0)), ""},
		{"a negative number of permits", with(permit(-1)), "capacity"},
		{"all permits", with(permits(3, 3)), ""},
		{"more permits than the capacity", with(permits(3, 4)), "permits"},
		{"all of the maximum number of permits", with(permits(lock.MaxHolders, lock.MaxHolders)), ""},
		{"less than no permits", with(permits(3, -1)), "permits"},
		{"permits of an exclusive lease", with(func(a *lock.Acquire) { a.Locks[0].Permits = 1 }), "permits"},
		{"permits of a shared lease", with(func(a *lock.Acquire) { shared(a); a.Locks[0].Permits = 1 }), "permits"},
		{"a capacity for an exclusive lease", with(func(a *lock.Acquire) { a.Locks[0].Capacity = 1 }), "capacity"},
		{"a capacity for a shared lease", with(func(a *lock.Acquire) { shared(a); a.Locks[0].Capacity = 1 }), "capacity"},
		{"a negative mode", with(func(a *lock.Acquire) { a.Locks[0].Mode = -1 }), "mode"},
		{"the longest task", with(func(a *lock.Acquire) { a.Task = longestTask }), ""},
		{"a task that is longer", with(func(a *lock.Acquire) { a.Task = longestTask + "t" }), "task_id"},
		{"a task with an empty part", with(func(a *lock.Acquire) { a.Task = "a..b" }), "task_id"},
		{"a task with a slash", with(func(a *lock.Acquire) { a.Task = "a/b" }), "task_id"},
		{"revoking the greatest slot", errOf(lock.Revoke{Name: "a", Token: 1, Reason: "r", Slot: slot(lock.MaxHolders)}.Resolve()), ""},
		{"revoking a slot beyond the greatest", errOf(lock.Revoke{Name: "a", Token: 1, Reason: "r", Slot: slot(lock.MaxHolders + 1)}.Resolve()), "slot"},
		{"verifying slot 0", errOf(lock.Verify{Name: "a", Token: 1, Slot: slot(0)}.Resolve()), ""},
		{"verifying a negative slot", errOf(lock.Verify{Name: "a", Token: 1, Slot: slot(-1)}.Resolve()), "slot"},
		{"a fenced write without a slot", errOf(write.Resolve()), ""},
		{"a fenced write with a negative slot", errOf(func() lock.FencedWrite { w := write; w.Slot = -1; return w }().Resolve()), "slot"},
	} {
		t.Run(b.name, b.check)
	}
}

func TestModesAndKindsHaveNames(t *testing.T) {
	t.Parallel()
	for m := lock.Exclusive; m <= lock.Permit; m++ {
		if lock.ModeOf(m.String()) != m {
			t.Errorf("the name %[2]q of mode %[1]d is that of mode %[3]d", m, m, lock.ModeOf(m.String()))
		}
	}
	for k := lock.Granted; k <= lock.Withdrawn; k++ {
		if lock.KindOf(k.String()) != k {
			t.Errorf("the name %[2]q of kind %[1]d is that of kind %[3]d", k, k, lock.KindOf(k.String()))
		}
	}
	if lock.ModeOf("unknown") != 0 || lock.KindOf("unknown") != 0 || lock.Mode(99).String() != "unknown" ||
		lock.Kind(-1).String() != "unknown" {
		t.Error("an invalid mode or kind is not called unknown")
	}
}

func TestBoundsOfOtherRequests(t *testing.T) {
	t.Parallel()
	bounds := widestBounds(t)
	version := int64(-1)
	for _, b := range []bound{
		{"a renewal without lease_id", errOf(lock.Renew{Locks: []string{"a"}}.Resolve(bounds)), "lease_id"},
		{"a renewal with an invalid TTL", errOf(lock.Renew{Locks: []string{"a"}, LeaseID: id(1), TTL: 1}.Resolve(bounds)), "ttl_ms"},
		{"a release without lease_id", errOf(lock.Release{Locks: []string{"a"}}.Resolve()), "lease_id"},
		{"a revocation without token", errOf(lock.Revoke{Name: "a", Reason: "r"}.Resolve()), "fencing_token"},
		{"a revocation with a token above 2⁵³−1", errOf(lock.Revoke{Name: "a", Token: lock.MaxToken + 1, Reason: "r"}.Resolve()), "fencing_token"},
		{"a revocation without reason", errOf(lock.Revoke{Name: "a", Token: 1}.Resolve()), "reason"},
		{"a fenced write to an invalid key", errOf(lock.FencedWrite{Key: "/", Lock: "a", Token: 1, Value: object(2)}.Resolve()), "key"},
		{"a fenced write with an invalid lock", errOf(lock.FencedWrite{Key: "k", Token: 1, Value: object(2)}.Resolve()), "lock"},
		{"a fenced write of invalid JSON", errOf(lock.FencedWrite{Key: "k", Lock: "a", Token: 1, Value: json.RawMessage(`{`)}.Resolve()), "value"},
		{"a fenced write at a negative version", errOf(lock.FencedWrite{Key: "k", Lock: "a", Token: 1, Value: object(2), IfVersion: &version}.Resolve()), "if_version"},
		{"a fenced write with a long operation_id", errOf(lock.FencedWrite{
			Key: "k", Lock: "a", Token: 1, Value: object(2), OperationID: strings.Repeat("ä", lock.MaxOperationIDLength+1),
		}.Resolve()), "operation_id"},
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

func TestDeploymentBounds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		bounds lock.Bounds
		ok     bool
	}{
		{"the zero value allows the widest", lock.Bounds{}, true},
		{"a maximum below the default TTL", lock.Bounds{MaxTTL: time.Second}, true},
		{"no grace allowed", lock.Bounds{MaxGrace: -1}, true},
		{"a minimum TTL below the widest", lock.Bounds{MinTTL: time.Millisecond}, false},
		{"a maximum TTL above the widest", lock.Bounds{MaxTTL: 25 * time.Hour}, false},
		{"a maximum grace above the widest", lock.Bounds{MaxGrace: time.Hour}, false},
		{"one waiter", lock.Bounds{MaxWaiters: 1}, true},
		{"a negative number of waiters", lock.Bounds{MaxWaiters: -1}, false},
		{"a minimum above the maximum", lock.Bounds{MinTTL: time.Minute, MaxTTL: time.Second}, false},
		{"a default above the maximum", lock.Bounds{DefaultTTL: time.Hour, MaxTTL: time.Minute}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, err := c.bounds.Resolve()
			if (err == nil) != c.ok {
				t.Errorf("err = %v", err)
			}
			if err == nil &&
				(b.DefaultTTL < b.MinTTL || b.DefaultTTL > b.MaxTTL || b.MaxGrace < 0 || b.MaxWaiters < 1) {
				t.Errorf("resolved to %+v", b)
			}
		})
	}
}
