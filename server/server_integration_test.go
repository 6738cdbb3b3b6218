package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// serveStore returns a harness with its own database.
func serveStore(t *testing.T) (harness, *store.Store) {
	t.Helper()
	locks := openStore(t, pgtest.URL(t))
	return serve(t, server.Options{Locks: locks, Ready: locks.Ready, Drain: locks.Drain}), locks
}

// number returns a member that is a JSON number.
func (a answer) number(t *testing.T, name string) float64 {
	t.Helper()
	n, ok := a.body[name].(float64)
	if !ok {
		t.Fatalf("%s is %v: %s", name, a.body[name], a.text)
	}
	return n
}

func TestLockChangesHands(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	mine, yours := uuid.NewString(), uuid.NewString()
	as := func(id, holder string) string { return `{"lease_id": "` + id + `", "holder": "` + holder + `"}` }
	s.get("/readyz").want(t, http.StatusOK, nil)
	s.get("/v1/locks/jobs:nightly").want(t, http.StatusOK, map[string]any{"state": "free", "fencing_token": 0.0, "changed_at": nil})

	granted := s.post("/v1/locks/jobs%3Anightly/acquire", as(mine, "me"))
	granted.want(t, http.StatusCreated, map[string]any{"lease_id": mine, "name": "jobs:nightly"})
	token := granted.number(t, "fencing_token")
	s.post(acquirePath, as(mine, "me")).want(t, http.StatusOK, map[string]any{"fencing_token": token})
	s.post(acquirePath, as(mine, "you")).want(t, http.StatusConflict, map[string]any{"code": "lease_id_in_use"})
	held := s.post(acquirePath, as(yours, "you"))
	held.want(t, http.StatusConflict, map[string]any{"code": "lock_held", "holder": "me", "newest_token": token})
	if held.Header.Get("Retry-After") == "" || held.number(t, "retry_after_ms") > 30000 {
		t.Errorf("held: %v %s", held.Header, held.text)
	}
	s.post("/v1/locks/jobs:nightly/renew", `{"lease_id": "`+mine+`", "ttl_ms": 60000}`).
		want(t, http.StatusOK, map[string]any{"fencing_token": token, "ttl_ms": 60000.0})
	s.get("/v1/locks?state=held&holder=me").want(t, http.StatusOK, map[string]any{"next_cursor": nil})

	s.post("/v1/locks/jobs:nightly/release", `{"lease_id": "`+mine+`"}`).want(t, http.StatusNoContent, nil)
	s.post("/v1/locks/jobs:nightly/release", `{"lease_id": "`+mine+`"}`).want(t, http.StatusNoContent, nil)
	s.post("/v1/locks/jobs:nightly/renew", `{"lease_id": "`+mine+`"}`).
		want(t, http.StatusConflict, map[string]any{"code": "lease_lost", "ended": "released", "fencing_token": token})
	next := s.post(acquirePath, as(yours, "you"))
	if next.want(t, http.StatusCreated, nil); next.number(t, "fencing_token") <= token {
		t.Errorf("token %v follows %v", next.body["fencing_token"], token)
	}
	s.post("/v1/locks/jobs:nightly/release", `{"lease_id": "`+uuid.NewString()+`"}`).
		want(t, http.StatusConflict, map[string]any{"code": "lease_lost", "ended": nil})
}

func TestRevokedHolderIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	write := func(token float64) answer {
		return s.send("PUT", "/v1/fenced/k", fmt.Sprintf(`{"lock": "jobs:nightly", "fencing_token": %.0f, "value": null, "if_version": 0}`, token))
	}
	revoke := func(token float64) answer {
		return s.post("/v1/locks/jobs:nightly/revoke", fmt.Sprintf(`{"fencing_token": %.0f, "reason": "r"}`, token))
	}
	write(1).want(t, http.StatusPreconditionFailed, map[string]any{"code": "unknown_token", "newest_token": 0.0})
	s.get("/v1/fenced/k").want(t, http.StatusNotFound, map[string]any{"code": "not_found"})
	token := s.post(acquirePath, `{"lease_id": "`+leaseID+`", "holder": "a"}`).number(t, "fencing_token")
	for range 2 {
		write(token).want(t, http.StatusOK, map[string]any{"version": 1.0, "value": nil})
	}
	revoke(token+1).want(t, http.StatusConflict, map[string]any{"code": "token_mismatch"})
	revoke(token).want(t, http.StatusOK, map[string]any{"state": "free"})
	s.post("/v1/locks/jobs:nightly/renew", oneID).want(t, http.StatusConflict, map[string]any{"code": "lease_lost", "ended": "revoked", "reason": "r"})
	s.post("/v1/tokens/verify", fmt.Sprintf(`{"name": "jobs:nightly", "fencing_token": %.0f}`, token)).want(t, http.StatusOK, map[string]any{"status": "ended"})
	next := s.post(acquirePath, `{"holder": "b"}`)
	next.want(t, http.StatusCreated, nil)
	write(token).want(t, http.StatusPreconditionFailed,
		map[string]any{"code": "stale_token", "fencing_token": token, "newest_token": next.number(t, "fencing_token")})

	events := s.get("/v1/events?lock=jobs:nightly")
	events.want(t, http.StatusOK, nil)
	var kinds []string
	for _, e := range events.body["events"].([]any) {
		kinds = append(kinds, e.(map[string]any)["kind"].(string))
	}
	if got := strings.Join(kinds, " "); got != "granted revoked granted refused" {
		t.Errorf("events: %s", got)
	}
}

func TestFreeFormJSONIsReturnedUnchanged(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	for name, metadata := range map[string]string{
		"an-empty-object": `{}`, "a-zero-byte": `{"a":"\u0000"}`, "a-great-number": `{"a":1e300,"b":123456789012345678901234567890}`,
		"null-inside": `{"a":null}`, "deep": `{"a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`, "html": `{"<&>":"é"}`,
	} {
		got := s.do(s.request(http.MethodPost, "/v1/locks/"+name+"/acquire", `{"holder": "a", "metadata": `+metadata+`}`))
		if got.want(t, http.StatusCreated, nil); !strings.Contains(got.text, `"metadata":`+metadata) {
			t.Errorf("%s became %s", metadata, got.text)
		}
		write := fmt.Sprintf(`{"lock": %q, "fencing_token": %v, "value": %s}`, name, got.number(t, "fencing_token"), metadata)
		if got = s.send("PUT", "/v1/fenced/"+name, write); !strings.Contains(got.text, `"value":`+metadata) {
			t.Errorf("%s became %d %s", metadata, got.StatusCode, got.text)
		}
	}
}

// TestSQLInTextIsText sends SQL wherever a request has text. It is returned unchanged, or refused like other text.
func TestSQLInTextIsText(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	for i, text := range []string{
		`'; drop table paddock.records; --`, `' or '1'='1`, `"; select pg_sleep(10); --`, `\'; --`, `$1`, `%s`, `$$`, `/* */`, `E'\\000'`, `a' || 'b`, `') returning *; --`,
	} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("sql:%d", i)
		got := s.post("/v1/locks/"+name+"/acquire", fmt.Sprintf(`{"holder": %s, "metadata": {%s: %s}}`, quoted, quoted, quoted))
		got.want(t, http.StatusCreated, map[string]any{"holder": text})
		page := s.get("/v1/locks?holder=" + url.QueryEscape(text))
		page.want(t, http.StatusOK, nil)
		if locks := page.body["locks"].([]any); len(locks) != 1 || locks[0].(map[string]any)["name"] != name {
			t.Errorf("%q has %v", text, locks)
		}
		token := got.number(t, "fencing_token")
		s.send("PUT", "/v1/fenced/"+name, fmt.Sprintf(`{"lock": %q, "fencing_token": %.0f, "value": %s}`, name, token, quoted)).
			want(t, http.StatusOK, map[string]any{"value": text})
		s.post("/v1/locks/"+name+"/revoke", fmt.Sprintf(`{"fencing_token": %.0f, "reason": %s}`, token, quoted)).want(t, http.StatusOK, nil)
		for _, path := range []string{"/v1/locks?prefix=", "/v1/events?lock=", "/v1/events?prefix=", "/v1/locks?state="} {
			s.get(path+url.QueryEscape(text)).want(t, http.StatusBadRequest, map[string]any{"code": "invalid_request"})
		}
	}
	s.post("/v1/locks/a_b/acquire", `{"holder": "h"}`).want(t, http.StatusCreated, nil)
	s.post("/v1/locks/axb/acquire", `{"holder": "h"}`).want(t, http.StatusCreated, nil)
	if locks := s.get("/v1/locks?prefix=a_").body["locks"].([]any); len(locks) != 1 {
		t.Errorf("a_ is used as a pattern: %v", locks)
	}
}

func TestInvalidCursorIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := serveStore(t)
	for _, cursor := range []string{"x", "%00", "am9i", strings.Repeat("a", 300), "%F0%9F"} {
		for _, list := range []string{"/v1/locks", "/v1/events"} {
			got := s.get(list + "?cursor=" + cursor)
			if got.StatusCode == http.StatusOK {
				continue // it happens to be valid
			}
			got.want(t, http.StatusBadRequest, map[string]any{"code": "invalid_request", "pointer": "cursor"})
		}
	}
}

func TestClosedStoreIsNotReady(t *testing.T) {
	t.Parallel()
	s, locks := serveStore(t)
	locks.Close()
	s.get("/readyz").want(t, http.StatusServiceUnavailable, map[string]any{"code": "unavailable"})
	s.get("/livez").want(t, http.StatusOK, nil)
	s.post(acquirePath, `{"holder": "a"}`).want(t, http.StatusServiceUnavailable, map[string]any{"code": "unavailable"})
	s.get("/v1/locks").want(t, http.StatusServiceUnavailable, map[string]any{"code": "unavailable"})
	s.get("/v1/fenced/k").want(t, http.StatusServiceUnavailable, map[string]any{"code": "unavailable"})
}
