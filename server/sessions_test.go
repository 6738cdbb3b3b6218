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
	const zeros = "00000000-0000-0000-0000-000000000000"
	open, renew, end := "/v1/sessions", "/v1/sessions/renew", "/v1/sessions/close"
	cases := []badRequest{
		{name: "no holder", path: open, body: `{}`, pointer: "/holder", detail: "is missing"},
		{name: "a session_id of zeros", path: open, body: `{"holder": "h", "session_id": "` + zeros + `"}`, pointer: "/session_id", detail: "give a random UUID"},
		{name: "a ttl_ms of zero", path: open, body: `{"holder": "h", "ttl_ms": 0}`, pointer: "/ttl_ms", detail: "is 0"},
		{name: "a ttl_ms below the least", path: open, body: `{"holder": "h", "ttl_ms": 99}`, pointer: "/ttl_ms", detail: "give 100 to"},
		{name: "a grace_ms that is too long", path: open, body: `{"holder": "h", "grace_ms": 60001}`, pointer: "/grace_ms", detail: "give 0 to 60000"},
		{name: "metadata that is a list", path: open, body: `{"holder": "h", "metadata": []}`, pointer: "/metadata", detail: "JSON object"},
		{name: "a mode", path: open, body: `{"holder": "h", "mode": "shared"}`, pointer: "/mode", detail: "may have grace_ms, holder, metadata, session_id, ttl_ms"},
		{name: "a renewal without session_id", path: renew, body: `{}`, pointer: "/session_id", detail: "is missing"},
		{name: "a renewal with zeros", path: renew, body: `{"session_id": "` + zeros + `"}`, pointer: "/session_id", detail: "was opened"},
		{name: "a renewal with a ttl_ms of zero", path: renew, body: `{"ttl_ms": 0, "session_id": "` + sessionID + `"}`, pointer: "/ttl_ms", detail: "is 0"},
		{name: "a renewal by the public name", path: renew, body: `{"session_id": "` + sessionName + `"}`, pointer: "/session_id", detail: "must be a UUID"},
		{name: "a close without session_id", path: end, body: `{}`, pointer: "/session_id", detail: "is missing"},
		{name: "a close with a ttl_ms", path: end, body: `{"ttl_ms": 1000, "session_id": "` + sessionID + `"}`, pointer: "/ttl_ms", detail: "may have session_id"},
		{name: "a revocation without reason", path: sessionPath + "/revoke", body: `{}`, pointer: "/reason", detail: "is missing"},
		{name: "a revocation with a token", path: sessionPath + "/revoke", body: `{"reason": "r", "fencing_token": 1}`, pointer: "/fencing_token", detail: "may have reason, skip_grace"},
		{name: "an acquire with a session_id of zeros", body: `{"holder": "h", "session_id": "` + zeros + `"}`, pointer: "/session_id", detail: "that of an open session"},
		{name: "an acquire with a ttl_ms beside it", body: `{"holder": "h", "ttl_ms": 1000, "session_id": "` + sessionID + `"}`, pointer: "/ttl_ms", detail: "with session_id"},
		{name: "an acquire with a grace_ms beside it", body: `{"holder": "h", "grace_ms": 1000, "session_id": "` + sessionID + `"}`, pointer: "/grace_ms", detail: "with session_id"},
		{name: "a list with a limit of zero", path: "/v1/sessions?limit=0", pointer: "limit", detail: "is 0"},
		{name: "a list of an empty holder", path: "/v1/sessions?holder=", pointer: "holder", detail: "is empty"},
		{name: "a list with a prefix", path: "/v1/sessions?prefix=a", pointer: "prefix", detail: "which has cursor, holder, limit"},
	}
	for i, segment := range []string{sessionID, "renew", strings.ToUpper(sessionName), "0000000000000000", "fbb9f2a32ab6969f", "7bb9", "7bb9%2F2a32ab696f"} {
		cases = append(cases, badRequest{name: fmt.Sprint("invalid name ", i+1), path: "/v1/sessions/" + segment, pointer: "session", detail: "16 hexadecimal digits"})
	}
	wantBadRequests(t, cases)
}
