package row

import (
	"reflect"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestEveryFieldIsComparedOrNeverChangesAlone: a swap writes a lease or waiter of a changed lock only if sameLease or
// sameWaiter finds a difference. A field that decisions change, and that is not compared, would be decided and answered
// but not written.
func TestEveryFieldIsComparedOrNeverChangesAlone(t *testing.T) {
	t.Parallel()
	checkFields(t, sameLease, map[string]string{
		"Name":    "two leases of one lock are compared",
		"Slot":    "two leases of one slot are compared",
		"Slots":   "set by the grant, with AcquiredAt",
		"Mode":    "as requested",
		"Grace":   "as requested, or that of the session, which is in the row of the session",
		"MaxHold": "as requested",
		"Stays":   "as requested",
		"Key":     "of the caller, set with the request",
		"Session": "ends only with a revocation, which changes the TTL",
		"Task":    "as requested",
		"Set":     "as requested",
		"Below":   "as requested",
		"Place":   "set by the grant, with AcquiredAt",
	})
	checkFields(t, sameWaiter, map[string]string{
		"Place":      "two waiters of one place are compared",
		"Lease":      "as requested, except for the Task, which changes with the Attachment",
		"Capacity":   "as requested",
		"Permits":    "as requested",
		"Caller":     "changes with the Attachment",
		"JoinedAt":   "set when the place is taken; changes with the Attachment if at all",
		"AliveUntil": "changes with the Attachment; what a heartbeat changes is in the row of the replica",
	})
}

// checkFields checks that two values are the same to the function exactly if they differ at most in one of the fields
// that never change alone. These have the reason.
func checkFields[T any](t *testing.T, same func(a, b *T) bool, fixed map[string]string) {
	t.Helper()
	all := reflect.TypeFor[T]()
	for i := range all.NumField() {
		a, b := new(T), new(T)
		setAnother(t, reflect.ValueOf(b).Elem().Field(i))
		name := all.Field(i).Name
		_, isFixed := fixed[name]
		switch {
		case same(a, b) && !isFixed:
			t.Errorf("%s.%s is not compared, so a change of it alone is not written; compare it, or say here why it has none", all, name)
		case !same(a, b) && isFixed:
			t.Errorf("%s.%s is compared; take it off the list", all, name)
		}
		delete(fixed, name)
	}
	for name := range fixed {
		t.Errorf("%s has no field %s; take it off the list", all, name)
	}
}

// setAnother sets the field, which is zero, to another value.
func setAnother(t *testing.T, field reflect.Value) {
	t.Helper()
	switch v := field.Addr().Interface().(type) {
	case *time.Time:
		*v = time.Unix(1, 0)
		return
	case *lock.Lease:
		v.ID[0] = 1
		return
	case *lock.Caller:
		v.Name = "x"
		return
	}
	switch {
	case field.Kind() == reflect.Bool:
		field.SetBool(true)
	case field.Kind() == reflect.String:
		field.SetString("x")
	case field.CanInt():
		field.SetInt(1)
	case field.CanUint():
		field.SetUint(1)
	case field.Kind() == reflect.Array:
		setAnother(t, field.Index(0))
	case field.Kind() == reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
	default:
		t.Fatalf("no other value of a %s is known; add one", field.Type())
	}
}
