package client_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

const (
	freezeJSON = `{"scope":"billing:","reason":"why","frozen_by":"ops","frozen_at":"2026-01-02T03:04:05Z","until":"2026-01-02T03:34:05Z",
		"leases":2,"as_of":"2026-01-02T03:04:06Z","a_later_field":true}`
	ruleJSON = `{"scope":"billing:","max_ttl_ms":1000,"max_hold_ms":2000,"min_grace_ms":3000,"capacity":4,"max_leases":5,"set_by":"ops",
		"set_at":"2026-01-02T03:04:05Z"}`
)

var (
	someFreeze = lock.Freeze{
		Scope: "billing:", Reason: "why", By: "ops", FrozenAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Until: time.Date(2026, 1, 2, 3, 34, 5, 0, time.UTC),
	}
	someRule = lock.Rule{
		Scope: "billing:", MaxTTL: time.Second, MaxHold: 2 * time.Second, MinGrace: 3 * time.Second, Capacity: 4, MaxLeases: 5,
		SetBy: "ops", SetAt: someFreeze.FrozenAt,
	}
)

// TestThePolicyOnTheWire has each call, what is sent, and what its answer becomes.
func TestThePolicyOnTheWire(t *testing.T) {
	t.Parallel()
	status := lock.FreezeStatus{Freeze: someFreeze, Leases: 2, AsOf: someFreeze.FrozenAt.Add(time.Second)}
	for want, c := range map[string]struct {
		answer string
		ask    func(*client.Client) (any, error)
		value  any
	}{
		`PUT /v1/freezes/billing: {"for_ms":1800000,"reason":"why"}`: {freezeJSON, func(c *client.Client) (any, error) {
			return c.Freeze(t.Context(), lock.FreezeRequest{Scope: "billing:", Reason: "why", For: 30 * time.Minute, By: "not sent"})
		}, status},
		`GET /v1/freezes/billing: `: {freezeJSON, func(c *client.Client) (any, error) { return c.Frozen(t.Context(), "billing:") }, status},
		`GET /v1/freezes `: {`{"freezes":[` + freezeJSON + `]}`, func(c *client.Client) (any, error) {
			return c.Freezes(t.Context())
		}, []lock.Freeze{someFreeze}},
		`DELETE /v1/freezes/a `: {"", func(c *client.Client) (any, error) { return nil, c.Thaw(t.Context(), lock.ThawRequest{Scope: "a"}) }, nil},
		`PUT /v1/rules/billing: {"capacity":4,"max_hold_ms":2000,"max_leases":5,"max_ttl_ms":1000,"min_grace_ms":3000}`: {ruleJSON,
			func(c *client.Client) (any, error) { return c.SetRule(t.Context(), someRule) }, someRule},
		`GET /v1/rules `:        {`{"rules":[` + ruleJSON + `]}`, func(c *client.Client) (any, error) { return c.Rules(t.Context()) }, []lock.Rule{someRule}},
		`DELETE /v1/rules/a:b `: {"", func(c *client.Client) (any, error) { return nil, c.RemoveRule(t.Context(), "a:b") }, nil},
		`POST /v1/locks/jobs:nightly/release {"lease_id":"` + leaseText + `","closed_ms":60000,"once_per":"day","time_zone":"Europe/Berlin"}`: {"",
			func(c *client.Client) (any, error) {
				return nil, c.Release(t.Context(), lock.Release{Locks: []string{"jobs:nightly"}, LeaseID: leaseID,
					Closed: lock.Closing{For: time.Minute, Period: lock.Day, Zone: "Europe/Berlin"}})
			}, nil},
	} {
		var r request
		code := http.StatusOK
		if c.answer == "" {
			code = http.StatusNoContent
		}
		got, err := c.ask(over(t, heard(&r, code, c.answer)))
		if diff := cmp.Diff(c.value, got); err != nil || diff != "" {
			t.Errorf("%s: %v, the answer differs (-want +got):\n%s", want, err, diff)
		}
		if sent := r.method + " " + r.uri + " " + r.text; sent != want {
			t.Errorf("sent %s, want %s", sent, want)
		}
	}
}

func TestAPolicyThatWasNotAskedForIsRefused(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{strings.Replace(freezeJSON, "billing:", "billing", 1), `{}`, `{"freezes":null,"rules":null}`} {
		c := over(t, saying(http.StatusOK, "application/json", answer))
		_, err := c.Freeze(t.Context(), lock.FreezeRequest{Scope: "billing:", Reason: "why"})
		expect(t, "Freeze", err, lock.ErrUnknownOutcome)
		_, err = c.SetRule(t.Context(), someRule)
		expect(t, "SetRule", err, lock.ErrUnknownOutcome)
		_, err = c.Frozen(t.Context(), "billing:")
		expect(t, "Frozen", err, lock.ErrUnavailable)
		_, err = c.Freezes(t.Context())
		expect(t, "Freezes", err, lock.ErrUnavailable)
		_, err = c.Rules(t.Context())
		expect(t, "Rules", err, lock.ErrUnavailable)
	}
}

func TestInvalidScopesAreNotSent(t *testing.T) {
	t.Parallel()
	c := over(t, func(r *http.Request) (*http.Response, error) {
		t.Errorf("sent %s %s", r.Method, r.URL)
		return reply(r, http.StatusOK, "application/json", freezeJSON), nil
	})
	for _, s := range []lock.Scope{"", ":", "a/b", "..", "a?b"} {
		_, err := c.Freeze(t.Context(), lock.FreezeRequest{Scope: s, Reason: "why"})
		expect(t, "Freeze", err, lock.ErrInvalid)
		expect(t, "Thaw", c.Thaw(t.Context(), lock.ThawRequest{Scope: s}), lock.ErrInvalid)
		_, err = c.Frozen(t.Context(), s)
		expect(t, "Frozen", err, lock.ErrInvalid)
		_, err = c.SetRule(t.Context(), lock.Rule{Scope: s, Capacity: 1})
		expect(t, "SetRule", err, lock.ErrInvalid)
		expect(t, "RemoveRule", c.RemoveRule(t.Context(), s), lock.ErrInvalid)
	}
	_, err := c.Freeze(t.Context(), lock.FreezeRequest{Scope: "a", Reason: "\xff"})
	expect(t, "a reason that JSON would change", err, lock.ErrInvalid)
}
