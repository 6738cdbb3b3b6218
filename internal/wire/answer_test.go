package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

const someLease = `{"name":"a","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","fencing_token":41,"slot":2,"mode":"shared",
	"holder":"w\u00f6rker \"1\"","ttl_ms":30000,"grace_ms":2000,"max_hold_ms":60000,"expires_in_ms":29000,"a_later_field":[{"x":null}],
	"acquired_at":"2026-01-02T03:04:05.678901Z","expires_at":"2026-01-02T03:04:35.678901+01:00","metadata":{"host" : "db-3"}}`

// FuzzResults reads any text as an answer. Results that it accepts must be possible answers, and must be read as the
// same results after they were encoded again.
func FuzzResults(f *testing.F) {
	asked := []lock.Command{lock.Acquire{Locks: lock.One("a"), LeaseID: someID, Holder: "h"}, lock.Release{Locks: []string{"a"}, LeaseID: someID}}
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
		if len(got) != len(asked) || !json.Valid(text) || got[1].Grant.ID != (lock.LeaseID{}) {
			t.Fatalf("%s was read as %+v", text, got)
		}
		if got[0].Err == nil {
			checkGrant(t, got[0].Grant, sent)
		}
	})
}

// checkGrant checks that the grant answers a request for the lock a with someID, and that its lease is read as the
// same one after it was encoded again.
func checkGrant(t *testing.T, g lock.Grant, sent time.Time) {
	t.Helper()
	if g.Name != "a" || g.ID != someID || g.Token <= 0 || g.Until.Before(sent) || min(g.TTL, g.Grace, g.MaxHold) < 0 {
		t.Errorf("granted %+v", g)
	}
	if max(g.AcquiredAt.UTC().Year(), g.ExpiresAt.UTC().Year()) > 9999 {
		return // JSON has no such instant
	}
	text := AppendLease(nil, LeaseOf(g))
	again, err := ParseLease(text, lock.Acquire{Locks: lock.One("a"), LeaseID: someID, Holder: "h"}, sent)
	if err != nil {
		t.Fatalf("%+v became %s: %v", g, text, err)
	}
	if diff := cmp.Diff(normalized(g), normalized(again)); diff != "" {
		t.Errorf("%s differs from what was read (-want +got):\n%s", text, diff)
	}
}

// normalized returns the lease without what an encoding may change: the time zone and white space.
func normalized(g lock.Grant) lock.Lease {
	l := g.Lease
	l.AcquiredAt, l.ExpiresAt, l.Metadata = l.AcquiredAt.UTC(), l.ExpiresAt.UTC(), nil
	if g.Metadata != nil {
		var text bytes.Buffer
		if err := json.Compact(&text, g.Metadata); err != nil {
			panic(err)
		}
		l.Metadata = text.Bytes()
	}
	return l
}

func TestAnswerToAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	asked := []lock.Command{lock.Acquire{Locks: lock.One("a"), LeaseID: someID, Holder: "h"}}
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
		"another session's":     strings.Replace(good, `"slot":2`, `"slot":2,"session":"7bb9f2a32ab6969f"`, 1),
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

// TestAnswersAreReadLeniently reads leases with members that are unknown, null or missing.
func TestAnswersAreReadLeniently(t *testing.T) {
	t.Parallel()
	asked, sent := lock.Acquire{Locks: lock.One("a"), LeaseID: someID, Holder: "h"}, time.Now()
	least := `{"name":"a","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","fencing_token":41`
	want, err := ParseLease([]byte(least+`}`), asked, sent)
	if err != nil || want.Token != 41 || !want.Until.Equal(sent) {
		t.Fatalf("the least that a lease has: %+v, %v", want, err)
	}
	for name, members := range map[string]string{
		"an unknown member":      `,"later":[{"x":[null,1e400,"\u00e9"]}]`,
		"null for each optional": `,"metadata":null,"max_hold_ms":null,"slot":null,"mode":null,"holder":null,"acquired_at":null,"expires_at":null`,
		"an unknown mode":        `,"mode":"later"`,
		"negative durations":     `,"ttl_ms":-1,"grace_ms":-9223372036854775808,"expires_in_ms":-1`,
		"white space":            " \n\t",
	} {
		got, err := ParseLease([]byte(least+members+`}`), asked, sent)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
}

func refusedItem(p api.Problem, _ int) error { return ToError(p) }
