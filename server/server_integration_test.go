package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// serveStore returns a harness with its own database.
func serveStore(t *testing.T) (harness, *store.Store) {
	t.Helper()
	locks := replica.Store(t, pgtest.URL(t), store.Options{})
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
