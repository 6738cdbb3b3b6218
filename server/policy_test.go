package server_test

import (
	"net/http"
	"testing"

	"github.com/paddock-lock/paddock/server"
)

func TestAReleaseThatClosesIsReadStrictly(t *testing.T) {
	t.Parallel()
	const path = "/v1/locks/a/release"
	body := func(members string) string { return `{"lease_id": "` + leaseID + `", ` + members + `}` }
	wantBadRequests(t, []badRequest{
		{name: "longer than 31 days", path: path, body: body(`"closed_ms": 2678400001`), pointer: "/closed_ms", detail: "is 2678400001; give 0 to 2678400000"},
		{name: "a negative time", path: path, body: body(`"closed_ms": -1`), pointer: "/closed_ms", detail: "is -1; give 0 to 2678400000"},
		{name: "an empty period", path: path, body: body(`"once_per": ""`), pointer: "/once_per", detail: "is empty; use minute"},
		{name: "a period that there is not", path: path, body: body(`"once_per": "year"`), pointer: "/once_per", detail: "use minute, hour, day, week or month"},
		{name: "a time zone that there is not", path: path, body: body(`"once_per": "day", "time_zone": "Mars"`), pointer: "/time_zone", detail: "such as Europe/Berlin"},
		{name: "the time zone of the machine", path: path, body: body(`"once_per": "day", "time_zone": "Local"`), pointer: "/time_zone", detail: "such as Europe/Berlin"},
		{name: "a time zone without a period", path: path, body: body(`"closed_ms": 1, "time_zone": "UTC"`), pointer: "/time_zone", detail: "only valid with once_per"},
		{name: "a set for longer than 31 days", path: releaseSetPath, body: `{"lease_id": "` + leaseID + `", "names": ["a", "b"], "closed_ms": 2678400001}`,
			pointer: "/closed_ms", detail: "give 0 to 2678400000"},
		{name: "shared work that is needed once", body: `{"holder": "h", "mode": "shared", "once": true}`, pointer: "/once", detail: "only valid with mode exclusive"},
		{name: "several locks that are needed once", path: "/v1/acquire", body: `{"holder": "h", "once": true, "locks": [{"name": "a"}, {"name": "b"}]}`,
			pointer: "/once", detail: "acquire the locks separately"},
	})
}

func TestThePolicyIsReadStrictly(t *testing.T) {
	t.Parallel()
	const freeze, rule = "/v1/freezes/a:", "/v1/rules/a:"
	wantBadRequests(t, []badRequest{
		{name: "a freeze without a reason", method: "PUT", path: freeze, body: `{}`, pointer: "/reason", detail: "is missing"},
		{name: "a freeze with an empty reason", method: "PUT", path: freeze, body: `{"reason": ""}`, pointer: "/reason", detail: "give 1 to 500"},
		{name: "a freeze of more than 31 days", method: "PUT", path: freeze, body: `{"reason": "r", "for_ms": 2678400001}`, pointer: "/for_ms", detail: "give 0 to 2678400000"},
		{name: "a freeze by somebody else", method: "PUT", path: freeze, body: `{"reason": "r", "frozen_by": "x"}`, pointer: "/frozen_by", detail: "may have for_ms, reason"},
		{name: "a scope that cannot be", method: "PUT", path: "/v1/freezes/:", body: `{"reason": "r"}`, pointer: "scope", detail: "scope must begin"},
		{name: "a rule without a bound", method: "PUT", path: rule, body: `{}`, pointer: "scope", detail: "give one or more of max_ttl_ms"},
		{name: "a TTL of nothing", method: "PUT", path: rule, body: `{"max_ttl_ms": 0}`, pointer: "/max_ttl_ms", detail: "is 0; give 100 to 86400000"},
		{name: "a hold of nothing", method: "PUT", path: rule, body: `{"max_hold_ms": 0}`, pointer: "/max_hold_ms", detail: "is 0; give 100 to"},
		{name: "a grace that is too long", method: "PUT", path: rule, body: `{"min_grace_ms": 60001}`, pointer: "/min_grace_ms", detail: "give 0 to 60000"},
		{name: "no permits", method: "PUT", path: rule, body: `{"capacity": 0}`, pointer: "/capacity", detail: "is 0; give 1 to 1000"},
		{name: "too many permits", method: "PUT", path: rule, body: `{"capacity": 1001}`, pointer: "/capacity", detail: "give 1 to 1000"},
		{name: "no leases", method: "PUT", path: rule, body: `{"max_leases": 0}`, pointer: "/max_leases", detail: "is 0; give 1 to 1000000"},
		{name: "the end of a freeze with a member", method: "DELETE", path: freeze, body: `{"reason": "r"}`, pointer: "/reason", detail: "this call has no body"},
		{name: "a freeze that there is not", path: freeze, status: http.StatusNotFound, code: "not_found"},
	})
}

// TestThePolicyIsAnswered has what each call answers, and what others are told.
func TestThePolicyIsAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	s.post("/v1/locks/a:b/acquire", `{"holder": "h", "lease_id": "`+leaseID+`"}`).want(t, 201, nil)
	frozen := map[string]any{"scope": "a:", "reason": "r", "leases": 1.0, "frozen_by": nil}
	s.send("PUT", "/v1/freezes/a:", `{"reason": "r", "for_ms": 60000}`).want(t, 200, frozen)
	s.get("/v1/freezes/a%3A").want(t, 200, frozen)
	s.post("/v1/locks/a:c/acquire", `{"holder": "h"}`).want(t, 409, map[string]any{"code": "lock_frozen", "reason": "r", "frozen_by": nil})
	if shown, _ := s.get("/v1/locks/a:b").body["frozen"].(map[string]any); shown["scope"] != "a:" || shown["reason"] != "r" || shown["until"] == nil {
		t.Errorf("the lock shows %v", shown)
	}
	s.post("/v1/locks/a:b/release", `{"lease_id": "`+leaseID+`", "closed_ms": 60000}`).want(t, 204, nil)
	s.get("/v1/freezes/a:").want(t, 200, map[string]any{"leases": 0.0})
	s.send("DELETE", "/v1/freezes/a:", "").want(t, 204, nil)
	s.send("DELETE", "/v1/freezes/a:", "").want(t, 204, nil)
	s.post("/v1/locks/a:b/acquire", `{"holder": "k", "once": true}`).want(t, 409, map[string]any{"code": "already_done", "holder": "h"})
	if shown, _ := s.get("/v1/locks/a:b").body["closed"].(map[string]any); shown["holder"] != "h" || shown["until"] == nil || shown["done_at"] == nil {
		t.Errorf("the lock shows %v", shown)
	}
	rule := map[string]any{"scope": "a:", "max_ttl_ms": 1000.0, "capacity": 3.0, "max_leases": nil, "set_by": nil}
	s.send("PUT", "/v1/rules/a:", `{"max_ttl_ms": 1000, "capacity": 3}`).want(t, 200, rule)
	s.post("/v1/locks/a:d/acquire", `{"holder": "h", "ttl_ms": 1001}`).want(t, 400, map[string]any{"pointer": "/ttl_ms"})
	s.post("/v1/locks/a:d/acquire", `{"holder": "h", "mode": "permit"}`).want(t, 201, map[string]any{"ttl_ms": 1000.0})
	s.send("DELETE", "/v1/rules/a:", "").want(t, 204, nil)
	if rules, _ := s.get("/v1/rules").body["rules"].([]any); rules == nil || len(rules) != 0 {
		t.Errorf("the rules are %v", rules)
	}
}
