package lock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestCheckFence(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name                string
		shown, seen, newest lock.Token
		want                error
	}{
		{"the newest token is accepted", 8, 7, 8, nil},
		{"the newest token is accepted again", 8, 8, 8, nil},
		{"a token lower than the one seen is stale", 7, 8, 8, lock.ErrStaleToken},
		{"a token lower than the newest is stale before the next holder's first write", 7, 7, 8, lock.ErrStaleToken},
		{"a token that was never granted is unknown", 9, 7, 8, lock.ErrUnknownToken},
		{"any token of an unused lock is unknown", 1, 0, 0, lock.ErrUnknownToken},
		{"a token is stale if the resource has seen a greater token of another lock", 8, 20, 8, lock.ErrStaleToken},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := lock.CheckFence(c.shown, c.seen, c.newest); !errors.Is(err, c.want) {
				t.Errorf("CheckFence = %v, want %v", err, c.want)
			}
		})
	}
}

func TestFencedWriteVersions(t *testing.T) {
	t.Parallel()
	at := func(v int64) *int64 { return &v }
	stored := lock.FencedValue{Key: "k", Lock: "l", Token: 5, Version: 3, Value: json.RawMessage(`{"a":1}`)}
	cases := []struct {
		name    string
		value   string
		version *int64
		want    int64
		err     error
	}{
		{"without a version", `2`, nil, 4, nil},
		{"at the current version", `2`, at(3), 4, nil},
		{"at an older version", `2`, at(2), 3, lock.ErrVersionMismatch},
		{"at version zero, which requires that the resource does not exist", `2`, at(0), 3, lock.ErrVersionMismatch},
		{"the same write repeated", `{"a":1}`, at(2), 3, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := lock.FencedWrite{Key: "k", Lock: "l", Token: 5, Value: json.RawMessage(c.value), IfVersion: c.version}
			f, err := w.Apply(stored, 5, t0)
			if f.Version != c.want || !errors.Is(err, c.err) {
				t.Errorf("version %d, %v; want %d, %v", f.Version, err, c.want, c.err)
			}
		})
	}
}

func TestARepeatedFencedWriteNeedsItsTokenStill(t *testing.T) {
	t.Parallel()
	stored := lock.FencedValue{Key: "k", Lock: "l", Token: 5, Version: 1, Value: json.RawMessage(`1`)}
	w := lock.FencedWrite{Key: "k", Lock: "l", Token: 5, Value: stored.Value, IfVersion: new(int64)}
	if _, err := w.Apply(stored, 6, t0); !errors.Is(err, lock.ErrStaleToken) {
		t.Errorf("repeated after another grant, it is answered with %v", err)
	}
}

// TestAnOperationThatWasDoneChangesNothing, whatever the write asks for, and needs its token still.
func TestAnOperationThatWasDoneChangesNothing(t *testing.T) {
	t.Parallel()
	stored := lock.FencedValue{Key: "k", Lock: "l", Token: 5, Version: 3, Value: json.RawMessage(`1`)}
	w := lock.FencedWrite{Key: "k", Lock: "l", Token: 6, Value: json.RawMessage(`2`), OperationID: "o", IfVersion: new(int64), Done: true}
	if f, err := w.Apply(stored, 6, t0); err != nil || !reflect.DeepEqual(f, stored) {
		t.Errorf("a later holder repeats it: %+v, %v", f, err)
	}
	if _, err := w.Apply(stored, 7, t0); !errors.Is(err, lock.ErrStaleToken) {
		t.Errorf("with a stale token it is answered with %v", err)
	}
}

func TestVerifyToken(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1))
	w.must(release(1))
	w.must(acquire(2))
	cases := []struct {
		name  string
		token lock.Token
		after time.Duration
		want  lock.TokenStatus
	}{
		{"the holder's token", 2, 0, lock.Current},
		{"an older token", 1, 0, lock.Stale},
		{"a token never granted", 3, 0, lock.Unknown},
		{"the newest token after its lease has ended", 2, time.Hour, lock.Ended},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := lock.Verify{Name: name, Token: c.token}.Check(w.record, w.now.Add(c.after))
			if v.Status != c.want || v.Newest != 2 || (v.Remaining > 0) != (c.want == lock.Current) {
				t.Errorf("verification %+v", v)
			}
		})
	}
}

// TestCodesAreComplete reads the source, so that a new code cannot be forgotten.
func TestCodesAreComplete(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
			declared++
			code := lock.Code(strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`))
			if !slices.Contains(lock.Codes(), code) {
				t.Errorf("Codes omits %q", code)
			}
		}
		return true
	})
	if declared != len(lock.Codes()) {
		t.Errorf("%d codes are declared, Codes has %d", declared, len(lock.Codes()))
	}
}

func TestLeaseIDIsNotPrinted(t *testing.T) {
	t.Parallel()
	secret := lock.LeaseID{0xde, 0xad, 0xbe, 0xef}
	grant := lock.Grant{Lease: lock.Lease{ID: secret}}
	for _, verb := range []string{"%v", "%+v", "%s", "%#v"} {
		if s := fmt.Sprintf(verb, grant); strings.Contains(s, "222") || strings.Contains(s, "0xde") ||
			strings.Contains(s, "dead") {
			t.Errorf("%s shows %s", verb, s)
		}
	}
}
