package client

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

var someID = lock.LeaseID(uuid.MustParse("5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"))

// Calls, and what they are as items by the types that come from openapi.yaml.
var items = map[string]struct {
	item lock.Command
	want any
}{
	"an acquire": {
		lock.Acquire{Name: "a:b", LeaseID: someID, Holder: "h"},
		openapi.BatchAcquire{Op: openapi.Acquire, Name: "a:b", LeaseID: new(uuid.UUID(someID)), Holder: "h"}},
	"one that says all": {
		lock.Acquire{Name: "a", LeaseID: someID, Holder: "\"<ä>\u2028\n\\", Mode: lock.Permit, Capacity: 3, TTL: 1500 * time.Microsecond, Grace: 1,
			MaxHold: time.Hour, Metadata: json.RawMessage("{\n \"a\" : \"<é>\", \"b\": [1, 2] }")},
		openapi.BatchAcquire{Op: openapi.Acquire, Name: "a", LeaseID: new(uuid.UUID(someID)), Holder: "\"<ä>\u2028\n\\", Mode: new(openapi.Permit),
			Capacity: new(3), TTLMs: new(int64(1)), GraceMs: new(int64(1)), MaxHoldMs: new(int64(3600000)), Metadata: json.RawMessage(`{"a":"<é>","b":[1,2]}`)}},
	"one that the service refuses": {
		lock.Acquire{Name: "a", LeaseID: someID, Mode: 7, Capacity: -1, TTL: -1},
		openapi.BatchAcquire{Op: openapi.Acquire, Name: "a", LeaseID: new(uuid.UUID(someID)), Mode: new(openapi.Mode("unknown")),
			Capacity: new(-1), TTLMs: new(int64(-1))}},
	"a renewal": {
		lock.Renew{Name: "a", LeaseID: someID},
		openapi.BatchRenew{Op: openapi.Renew, Name: "a", LeaseID: uuid.UUID(someID)}},
	"a renewal with a TTL and metadata": {
		lock.Renew{Name: "a", LeaseID: someID, TTL: time.Minute, Metadata: json.RawMessage(`{}`)},
		openapi.BatchRenew{Op: openapi.Renew, Name: "a", LeaseID: uuid.UUID(someID), TTLMs: new(int64(60000)), Metadata: json.RawMessage(`{}`)}},
	"a release": {
		lock.Release{Name: "a", LeaseID: someID},
		openapi.BatchRelease{Op: openapi.Release, Name: "a", LeaseID: uuid.UUID(someID)}},
}

func TestAnItemIsWrittenAsTheContractSays(t *testing.T) {
	t.Parallel()
	for name, c := range items {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := appendItem(nil, c.item)
			want, err := json.Marshal(c.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(members(t, want), members(t, text)); diff != "" {
				t.Errorf("wrote %s, which differs (-want +got):\n%s", text, diff)
			}
			if strings.ContainsAny(string(text), "\n ") {
				t.Errorf("wrote white space: %s", text)
			}
		})
	}
}

func members(t *testing.T, text []byte) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

const someLease = `{"name":"a","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","fencing_token":41,"slot":2,"mode":"shared",
	"holder":"w\u00f6rker \"1\"","ttl_ms":30000,"grace_ms":2000,"max_hold_ms":60000,"expires_in_ms":29000,"a_later_field":[{"x":null}],
	"acquired_at":"2026-01-02T03:04:05.678901Z","expires_at":"2026-01-02T03:04:35.678901+01:00","metadata":{"host" : "db-3"}}`

// FuzzResults has whatever may be an answer be read, and compares the leases with those that the
// types that come from openapi.yaml read.
func FuzzResults(f *testing.F) {
	asked := []lock.Command{lock.Acquire{Name: "a", LeaseID: someID, Holder: "h"}, lock.Release{Name: "a", LeaseID: someID}}
	f.Add([]byte(`{"results":[{"status":201,"lease":` + someLease + `},{"status":204}]}`))
	f.Add([]byte(`{"more":1,"results":[{"lease":` + someLease + `,"status":200},{"status":409,"problem":{"code":"lease_lost","detail":"D."}}]} `))
	f.Add([]byte(`{"results":[{"status":503,"problem":{"code":"unavailable"}},{"status":204}]}{}`))
	f.Add([]byte(`{"results":[{"status":201},{"status":204,"lease":` + someLease + `}],"results":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		sent := time.Now()
		got, err := resultsFrom(text, asked, sent)
		if err != nil {
			return
		}
		var want openapi.BatchResults
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%s was read as %+v: %v", text, got, err)
		}
		if len(got) != len(asked) || len(want.Results) != len(asked) {
			t.Fatalf("%s was read as %+v", text, got)
		}
		for i, r := range want.Results {
			switch {
			case (got[i].Err != nil) != (r.Status/100 != 2):
				t.Errorf("%s was read as %+v", text, got)
			case r.Lease != nil && got[i].Err == nil:
				lease := grantFrom(answer[openapi.Lease]{sent: sent, value: *r.Lease})
				lease.Replayed = r.Status == 200
				if diff := cmp.Diff(lease, got[i].Grant); diff != "" {
					t.Errorf("%s differs (-want +got):\n%s", text, diff)
				}
			}
		}
	})
}

func TestAnAnswerThatIsNoneIsNotRead(t *testing.T) {
	t.Parallel()
	asked := []lock.Command{lock.Acquire{Name: "a", LeaseID: someID, Holder: "h"}}
	good := `{"results":[{"status":201,"lease":` + someLease + `}]}`
	if _, err := resultsFrom([]byte(good), asked, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing":               ``,
		"no object":             `[]`,
		"null":                  `null`,
		"no results":            `{}`,
		"no list of results":    `{"results":{}}`,
		"results of null":       `{"results":null}`,
		"no result":             `{"results":[]}`,
		"a result too many":     strings.Replace(good, `]}`, `,{"status":204}]}`, 1)[:len(good)+len(`,{"status":204}`)],
		"a result of null":      `{"results":[null]}`,
		"no status":             `{"results":[{"lease":` + someLease + `}]}`,
		"no lease":              `{"results":[{"status":201}]}`,
		"a lease of null":       `{"results":[{"status":201,"lease":null}]}`,
		"another lock's lease":  strings.Replace(good, `"name":"a"`, `"name":"b"`, 1),
		"another's lease":       strings.Replace(good, "5e0c", "5e0d", 1),
		"no token":              strings.Replace(good, `"fencing_token":41,`, ``, 1),
		"a token in words":      strings.Replace(good, `41`, `"41"`, 1),
		"no instant":            strings.Replace(good, `2026-01-02T`, ``, 1),
		"a problem without one": `{"results":[{"status":409}]}`,
		"one without a code":    `{"results":[{"status":409,"problem":{"title":"x"}}]}`,
		"one that is a list":    `{"results":[{"status":409,"problem":[]}]}`,
		"one that is cut short": good[:len(good)-1],
		"one with a tail":       good + `x`,
	} {
		if got, err := resultsFrom([]byte(text), asked, time.Now()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}
