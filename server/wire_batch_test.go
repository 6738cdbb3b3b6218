package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// TestItemsHaveTheMembersOfTheirTypes: what is written out by hand is what openapi.yaml
// says.
func TestItemsHaveTheMembersOfTheirTypes(t *testing.T) {
	t.Parallel()
	types := map[openapi.BatchAcquireOp]reflect.Type{
		openapi.BatchAcquireOp(openapi.Acquire): reflect.TypeFor[openapi.BatchAcquire](),
		openapi.BatchAcquireOp(openapi.Renew):   reflect.TypeFor[openapi.BatchRenew](),
		openapi.BatchAcquireOp(openapi.Release): reflect.TypeFor[openapi.BatchRelease](),
	}
	if len(kinds) != len(types) {
		t.Errorf("there are %d kinds, and %d types", len(kinds), len(types))
	}
	for op, of := range types {
		var may, must []string
		for _, m := range newForm(of) {
			if may = append(may, m.name); m.required {
				must = append(must, m.name)
			}
			kind := of.Field(m.index).Type
			if kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			if place := placeOf(m.name); place >= 0 && fields[place].kind.Kind() != kind.Kind() {
				t.Errorf("%s of %s is a %v, and is read as a %v", m.name, op, kind, fields[place].kind)
			}
		}
		got := kinds[op]
		for what, names := range map[string][2][]string{"has": {got.may.names(), may}, "needs": {got.must.names(), must}} {
			slices.Sort(names[0])
			slices.Sort(names[1])
			if diff := cmp.Diff(names[1], names[0]); diff != "" {
				t.Errorf("%s %s: %s", op, what, diff)
			}
		}
	}
}

// TestALeaseIsWrittenAsByEncodingJSON, with all that it can have, and with the least.
func TestALeaseIsWrittenAsByEncodingJSON(t *testing.T) {
	t.Parallel()
	full := openapi.Lease{
		Name: "a:b", LeaseID: uuid.New(), FencingToken: int64(lock.MaxToken), Slot: 7, Mode: "permit", Holder: "<é> \"\\\u2028\x7f 𝄞",
		TTLMs: 30000, GraceMs: 2000, MaxHoldMs: new(int64(3600000)), AcquiredAt: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC),
		ExpiresAt: time.Date(2026, 1, 2, 3, 4, 35, 0, time.UTC), ExpiresInMs: 29997, Metadata: json.RawMessage(` {"a": [1e400, null, "<"], "b" : 0.10} `),
	}
	for i, of := 0, reflect.ValueOf(full); i < of.NumField(); i++ {
		if of.Field(i).IsZero() {
			t.Errorf("%s has no value here", of.Type().Field(i).Name)
		}
	}
	for _, l := range []openapi.Lease{full, {}} {
		want, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		got := appendLease(nil, l)
		if diff := cmp.Diff(membersIn(t, want), membersIn(t, got)); diff != "" {
			t.Errorf("%s: %s", got, diff)
		}
		if l.Metadata != nil && !strings.Contains(string(got), `"metadata":{"a":[1e400,null,"<"],"b":0.10}}`) {
			t.Errorf("metadata is not as it was, without white space: %s", got)
		}
	}
}

// membersIn returns the members of a JSON object: strings as they read, all else as it
// is written.
func membersIn(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	members := make(map[string]string, len(raw))
	for name, value := range raw {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		if name == "metadata" {
			s = strings.ReplaceAll(s, `\u003c`, "<")
		}
		members[name] = s
	}
	return members
}

func TestABatchIsWrittenAsItsType(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/v1/batch", nil)
	grant := lock.Grant{Lease: lock.Lease{Name: "a", Holder: "h", Mode: lock.Shared}}
	replayed := grant
	replayed.Replayed = true
	b := batch{
		items:   []lock.Command{lock.Acquire{}, lock.Acquire{}, lock.Renew{}, lock.Release{}, nil, lock.Renew{}},
		results: []lock.Result{{Grant: grant}, {Grant: replayed}, {Grant: grant}, {}, {Err: lock.Invalid("op", "is bad")}, {Err: lock.ErrLeaseLost}},
	}
	var got openapi.BatchResults
	if err := json.Unmarshal(encoded(told{b, r}), &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{201, 200, 200, 204, 400, 409} {
		result := got.Results[i]
		leased, refused := want < http.StatusNoContent, want >= http.StatusBadRequest
		if result.Status != want || (result.Lease != nil) != leased || (result.Problem != nil) != refused {
			t.Errorf("item %d is told %+v, want %d", i, result, want)
		}
		if leased && (result.Lease.Name != "a" || result.Lease.Mode != openapi.Shared) {
			t.Errorf("item %d has the lease %+v", i, result.Lease)
		}
	}
}
