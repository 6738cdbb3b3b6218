package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// TestJSONOutputEqualsTheServiceAnswer compares -o json with the answer of the service to the same request.
func TestJSONOutputEqualsTheServiceAnswer(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.useLocks()
	page, err := d.locks.Events(t.Context(), paddock.EventQuery{Limit: paddock.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	for path, args := range map[string][]string{
		"/v1/locks/jobs:nightly":       {"get", "jobs:nightly"},
		"/v1/locks/uploads":            {"get", "uploads"},
		"/v1/locks/never":              {"get", "never"},
		"/v1/locks/jobs:nightly/queue": {"queue", "jobs:nightly"},
		"/v1/locks/uploads/queue":      {"queue", "uploads"},
		"/v1/locks?state=held":         {"list", "--state=held"},
		"/v1/events?kind=granted":      {"events", "--kind=granted"},
		"/v1/events?holder=me":         {"events", "--holder=me"},
		fmt.Sprint("/v1/events?limit=", len(page.Items)): {"watch", "--from=oldest",
			fmt.Sprintf("--count=%d", len(page.Items))},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) { // not in parallel: the waiters wait for a limited time
			answer := decodeJSON(t, get(t, d.base+path))
			if page, ok := answer.(map[string]any); ok && strings.HasPrefix(path, "/v1/locks?") {
				answer = page["locks"]
			} else if ok && strings.HasPrefix(path, "/v1/events") {
				answer = page["events"]
			}
			_, printed, _ := call(t, d.env, append(args, "-o", "json")...)
			if args[0] == "watch" {
				printed = "[" + strings.ReplaceAll(strings.TrimSpace(printed), "\n", ",") + "]"
			}
			if diff := cmp.Diff(answer, decodeJSON(t, printed)); diff != "" {
				t.Errorf("the service's answer (-) and the output (+) differ:\n%s", diff)
			}
		})
	}
}

// useLocks creates locks in every state.
func (d *harness) useLocks() {
	d.Helper()
	metadata := json.RawMessage(`{"why":"<it's> & é","at":[1,2]}`)
	d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "before", Metadata: metadata, Grace: time.Second})
	first := d.hold(lock.Acquire{Locks: []lock.Member{{Name: "uploads", Mode: lock.Permit, Capacity: 2}}, Holder: "one"})
	d.hold(lock.Acquire{Locks: []lock.Member{{Name: "uploads", Mode: lock.Permit, Capacity: 2}}, Holder: "two"})
	revoked := d.hold(lock.Acquire{Locks: lock.One("revoked"), Holder: "me"})
	if _, err := d.locks.Revoke(d.Context(), lock.Revoke{Name: "revoked", Token: revoked.Token,
		Reason: "a reason"}); err != nil {
		d.Fatal(err)
	}
	renewal := lock.Renew{Locks: []string{"uploads"}, LeaseID: first.ID, Metadata: metadata}
	if _, err := d.locks.Renew(d.Context(), renewal); err != nil {
		d.Fatal(err)
	}
	d.enqueue(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "waiter"})
	d.enqueue(lock.Acquire{Locks: []lock.Member{{Name: "uploads", Mode: lock.Permit, Capacity: 2}}, Holder: "waiter"})
}

func TestPrintedLeaseEqualsTheServiceAnswer(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	id := uuid.NewString()
	printed, _ := d.expectExit(exitOK, "acquire", "jobs:nightly", "--lease-id="+id, "-o", "json", "--max-hold=2h",
		`--metadata={"a":"<&>"}`)
	body := strings.NewReader(fmt.Sprintf(`{"lease_id":%q,"holder":"me"}`, id))
	res, err := http.Post(d.base+"/v1/locks/jobs:nightly/acquire", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, res.Body)
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", res.Status, err, answer)
	}
	if diff := cmp.Diff(decodeJSON(t, string(answer)), decodeJSON(t, printed)); diff != "" {
		t.Errorf("the service's answer (-) and the output (+) differ:\n%s", diff)
	}
}

// decodeJSON returns the value without what depends on the time of the request.
func decodeJSON(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	removeTimes(value)
	return value
}

func removeTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range []string{"as_of", "expires_in_ms", "waited_ms"} {
			if _, ok := v[member]; ok {
				v[member] = "there"
			}
		}
		for _, member := range v {
			removeTimes(member)
		}
	case []any:
		for _, item := range v {
			removeTimes(item)
		}
	}
}
