package server_test

import (
	"fmt"
	"strings"
	"testing"
)

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
