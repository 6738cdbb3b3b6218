package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// TestLeaseIsEncodedAsByEncodingJSON encodes a lease with every member and one with the least.
func TestLeaseIsEncodedAsByEncodingJSON(t *testing.T) {
	t.Parallel()
	full := api.Lease{
		Name: "a:b", LeaseID: uuid.New(), FencingToken: int64(lock.MaxToken), Slot: 7, Slots: []int{7, 9}, Mode: "permit", Holder: "<é> \"\\\u2028\x7f 𝄞",
		TTLMs: 30000, GraceMs: 2000, MaxHoldMs: new(int64(3600000)), OnExpiry: onExpiryOf(true), AcquiredAt: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC),
		ExpiresAt: time.Date(2026, 1, 2, 3, 4, 35, 0, time.UTC), ExpiresInMs: 29997, Session: new("7bb9f2a32ab6969f"), Metadata: json.RawMessage(` {"a": [1e400, null, "<"], "b" : 0.10} `),
	}
	for i, of := 0, reflect.ValueOf(full); i < of.NumField(); i++ {
		if of.Field(i).IsZero() {
			t.Errorf("%s has no value here", of.Type().Field(i).Name)
		}
	}
	for _, l := range []api.Lease{full, {}} {
		want, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		got := AppendLease(nil, l)
		if diff := cmp.Diff(membersIn(t, want), membersIn(t, got)); diff != "" {
			t.Errorf("%s: %s", got, diff)
		}
		if l.Metadata != nil && !strings.Contains(string(got), `"metadata":{"a":[1e400,null,"<"],"b":0.10}}`) {
			t.Errorf("metadata is not as it was, without white space: %s", got)
		}
	}
}

// TestMetadataIsKeptAsItIs encodes metadata that other encoders would change by more than its white space.
func TestMetadataIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]string{
		`{"a": 1, "a": 2}`:                    `{"a":1,"a":2}`,
		"{\"a\": \"\\u003c<\\/ \u2028\x7f\"}": "{\"a\":\"\\u003c<\\/ \u2028\x7f\"}",
		"{\"a\":\t\"\xff\"}":                  "{\"a\":\"\xff\"}",
		"{\"a\":[1E400, -0.0,\n1.10]}":        `{"a":[1E400,-0.0,1.10]}`,
	} {
		if got := AppendLease(nil, api.Lease{Metadata: json.RawMessage(metadata)}); !bytes.HasSuffix(got, []byte(`"metadata":`+want+`}`)) {
			t.Errorf("%q became %q, want %q", metadata, got, want)
		}
	}
}

// TestTextIsReadAsItWasEncoded encodes holders that need escapes and holders that do not.
func TestTextIsReadAsItWasEncoded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "worker-1", "<&>", "wörker", "\"", "\\", "\x00\x1f\x7f", "a\nb\tc", "\u2028", "𝄞", "\xff", "é\xc3"} {
		var got string
		encoded := appendText(nil, text)
		if err := json.Unmarshal(encoded, &got); err != nil || got != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%q became %s, which is read as %q: %v", text, encoded, got, err)
		}
	}
}

// membersIn returns the members of a JSON object: strings decoded, all other values as they are written.
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

var someSession = uuid.MustParse("7c1b7e5a-3d0f-4a55-9d27-6d0a2b1c9e44")

var someID = lock.LeaseID(uuid.MustParse("5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"))
