package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

const someLease = `{"name":"a","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","fencing_token":41,"slot":2,"mode":"shared",
	"holder":"w\u00f6rker \"1\"","ttl_ms":30000,"grace_ms":2000,"max_hold_ms":60000,"expires_in_ms":29000,"a_later_field":[{"x":null}],
	"acquired_at":"2026-01-02T03:04:05.678901Z","expires_at":"2026-01-02T03:04:35.678901+01:00","metadata":{"host" : "db-3"}}`

// FuzzResults has whatever may be an answer be read, and compares the leases with those that the
// types that come from yaml read.
func FuzzResults(f *testing.F) {
	asked := []lock.Command{lock.Acquire{Name: "a", LeaseID: someID, Holder: "h"}, lock.Release{Name: "a", LeaseID: someID}}
	f.Add([]byte(`{"results":[{"status":201,"lease":` + someLease + `},{"status":204}]}`))
	f.Add([]byte(`{"more":1,"results":[{"lease":` + someLease + `,"status":200},{"status":409,"problem":{"code":"lease_lost","detail":"D."}}]} `))
	f.Add([]byte(`{"results":[{"status":503,"problem":{"code":"unavailable"}},{"status":204}]}{}`))
	f.Add([]byte(`{"results":[{"status":201},{"status":204,"lease":` + someLease + `}],"results":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		sent := time.Now()
		got, err := ParseResults(text, asked, sent, refusedItem)
		if err != nil {
			return
		}
		var want BatchResults
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
				lease := grantOf(*r.Lease, sent)
				lease.Replayed = r.Status == 200
				if diff := cmp.Diff(lease, got[i].Grant); diff != "" {
					t.Errorf("%s differs (-want +got):\n%s", text, diff)
				}
			}
		}
	})
}

func TestAnswerToAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	asked := []lock.Command{lock.Acquire{Name: "a", LeaseID: someID, Holder: "h"}}
	good := `{"results":[{"status":201,"lease":` + someLease + `}]}`
	if _, err := ParseResults([]byte(good), asked, time.Now(), refusedItem); err != nil {
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
		if got, err := ParseResults([]byte(text), asked, time.Now(), refusedItem); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

func refusedItem(p Problem, _ int) error { return p.Domain() }

// grantOf returns the grant that a lease stands for, by the generated type.
func grantOf(l Lease, sent time.Time) lock.Grant {
	return lock.Grant{
		Lease: lock.Lease{
			ID: lock.LeaseID(l.LeaseID), Name: l.Name, Slot: l.Slot, Mode: lock.ModeOf(string(l.Mode)), Holder: l.Holder,
			Token: lock.Token(l.FencingToken), TTL: DurationOf(l.TTLMs), Grace: DurationOf(l.GraceMs),
			MaxHold: DurationOf(ValueOf(l.MaxHoldMs)), AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt, Metadata: l.Metadata,
		},
		Until: sent.Add(DurationOf(l.ExpiresInMs)),
	}
}
