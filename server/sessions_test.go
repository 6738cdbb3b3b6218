package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

func TestSessionCallsReachTheServiceUnchanged(t *testing.T) {
	t.Parallel()
	var asked []any
	id := lock.SessionID(uuid.MustParse(sessionID))
	note := func(call any) (lock.SessionGrant, error) {
		asked = append(asked, call)
		return sessionOf(lock.OpenSession{ID: id, Holder: "h", TTL: time.Minute}), nil
	}
	s := serve(t, server.Options{Locks: &fake{sessions: fakeSessions{
		open:  func(o lock.OpenSession) (lock.SessionGrant, error) { return note(o) },
		renew: func(r lock.RenewSession) (lock.SessionGrant, error) { return note(r) },
		close: func(c lock.CloseSession) error { _, err := note(c); return err },
		revoke: func(r lock.RevokeSession) (lock.SessionInfo, error) {
			_, err := note(r)
			return lock.SessionInfo{Ref: r.Ref, AsOf: instant}, err
		},
		list: func(q lock.SessionQuery) (lock.Page[lock.SessionInfo], error) {
			_, err := note(q)
			return lock.Page[lock.SessionInfo]{Items: []lock.SessionInfo{{Ref: id.Ref()}}, Next: sessionName}, err
		},
	}}})
	s.post("/v1/sessions", `{"session_id": "`+sessionID+`", "holder": "<é>", "ttl_ms": 20000, "grace_ms": 2000, "metadata": {"a": null}}`).
		want(t, http.StatusCreated, map[string]any{"session_id": sessionID, "session": sessionName, "leases": 2.0, "places": 1.0, "ttl_ms": 60000.0})
	s.post("/v1/sessions/renew", `{"ttl_ms": 1000, "session_id": "`+sessionID+`"}`).
		want(t, http.StatusOK, map[string]any{"session_id": sessionID, "holder": "h", "metadata": nil})
	s.post("/v1/sessions/close", oneSession).want(t, http.StatusNoContent, nil)
	s.post(sessionPath+"/revoke", `{"reason": "r", "skip_grace": true}`).want(t, http.StatusOK, map[string]any{"session_id": nil})
	page := s.get("/v1/sessions?holder=h%20h&limit=7&cursor=" + sessionName)
	page.want(t, http.StatusOK, map[string]any{"next_cursor": sessionName})
	if link := page.Header.Get("Link"); link != `<?cursor=`+sessionName+`&holder=h+h&limit=7>; rel="next"` {
		t.Errorf("Link: %s", link)
	}
	want := []any{
		lock.OpenSession{ID: id, Holder: "<é>", TTL: 20 * time.Second, Grace: 2 * time.Second, Metadata: []byte(`{"a": null}`)},
		lock.RenewSession{ID: id, TTL: time.Second}, lock.CloseSession{ID: id},
		lock.RevokeSession{Ref: id.Ref(), Reason: "r", SkipGrace: true}, lock.SessionQuery{Holder: "h h", Limit: 7, Cursor: sessionName},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

func TestSessionRequestsAreReadStrictly(t *testing.T) {
	t.Parallel()
	open, renew, end := "/v1/sessions", "/v1/sessions/renew", "/v1/sessions/close"
	cases := []badRequest{
		{name: "a mode", path: open, body: `{"holder": "h", "mode": "shared"}`, pointer: "/mode", detail: "may have grace_ms, holder, metadata, session_id, ttl_ms"},
		{name: "a renewal by the public name", path: renew, body: `{"session_id": "` + sessionName + `"}`, pointer: "/session_id", detail: "must be a UUID"},
		{name: "a close with a ttl_ms", path: end, body: `{"ttl_ms": 1000, "session_id": "` + sessionID + `"}`, pointer: "/ttl_ms", detail: "may have session_id"},
		{name: "a revocation with a token", path: sessionPath + "/revoke", body: `{"reason": "r", "fencing_token": 1}`, pointer: "/fencing_token", detail: "may have reason, skip_grace"},
		{name: "a list with a prefix", path: "/v1/sessions?prefix=a", pointer: "prefix", detail: "which has cursor, holder, limit"},
	}
	for i, segment := range []string{sessionID, "renew", strings.ToUpper(sessionName), "0000000000000000", "fbb9f2a32ab6969f", "7bb9", "7bb9%2F2a32ab696f"} {
		cases = append(cases, badRequest{name: fmt.Sprint("invalid name ", i+1), path: "/v1/sessions/" + segment, pointer: "session", detail: "16 hexadecimal digits"})
	}
	wantBadRequests(t, cases)
}
