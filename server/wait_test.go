package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

const waitPath = "/v1/events/wait"

func TestTheBodyOfAWaitIsReadStrictly(t *testing.T) {
	t.Parallel()
	list := func(n int, item func(int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	name := func(i int) string { return fmt.Sprintf(`"a:%d"`, i) }
	session := func(i int) string { return fmt.Sprintf(`"%016x"`, i+1) }
	cases := []badRequest{
		{name: "nothing", body: `{}`, pointer: "/locks", detail: "name at least one lock or one session"},
		{name: "empty lists", body: `{"locks": [], "sessions": []}`, pointer: "/locks", detail: "name at least one"},
		{name: "one bad lock", body: `{"locks": ["a/b"]}`, pointer: "/locks/0", detail: "at byte 1"},
		{name: "an empty lock", body: `{"locks": [""]}`, pointer: "/locks/0", detail: "is empty"},
		{name: "a bad lock among others", body: `{"locks": ["a", "a/b"]}`, pointer: "/locks/1", detail: "at byte 1"},
		{name: "a lock twice", body: `{"locks": ["a", "b", "a"]}`, pointer: "/locks/2", detail: "is given twice"},
		{name: "null", body: `{"locks": null}`, pointer: "/locks", detail: "is null"},
		{name: "a lock that is no text", body: `{"locks": [1]}`, pointer: "/locks/0", detail: "must be a string"},
		{name: "5001 locks", body: `{"locks": ` + list(5001, name) + `}`, pointer: "/locks", detail: "give at most 5000"},
		{name: "1001 sessions", body: `{"sessions": ` + list(1001, session) + `}`, pointer: "/sessions", detail: "give at most 1000"},
		{name: "a session's secret", body: `{"sessions": ["` + sessionID + `"]}`, pointer: "/sessions/0", detail: "not its session_id"},
		{name: "a session twice", body: `{"sessions": ["` + sessionName + `", "` + sessionName + `"]}`, pointer: "/sessions/1", detail: "is given twice"},
		{name: "an unknown kind", body: `{"locks": ["a"], "kinds": ["granted", "renewed"]}`, pointer: "/kinds/1", detail: "is unknown"},
		{name: "a bad cursor", body: `{"locks": ["a"], "cursor": "x"}`, pointer: "/cursor", detail: "is invalid"},
		{name: "a wait too long", body: `{"locks": ["a"], "wait_ms": 50001}`, pointer: "/wait_ms", detail: "give 0 to 50000"},
		{name: "an unknown member", body: `{"locks": ["a"], "lock": "a"}`, pointer: "/lock", detail: "which may have cursor, kinds, locks, sessions, wait_ms"},
		{name: "a member twice", body: `{"locks": ["a"], "locks": ["b"]}`, pointer: "/locks", detail: "is there twice"},
		{name: "a parameter", path: waitPath + "?wait_ms=1", body: `{"locks": ["a"]}`, pointer: "wait_ms", detail: "has none"},
		{name: "a body too large", body: `{"locks": ["a"]}` + strings.Repeat(" ", server.MaxWaitBodySize),
			status: http.StatusRequestEntityTooLarge, code: "body_too_large", detail: "more than 1310720 bytes"},
	}
	for i := range cases {
		if cases[i].path == "" {
			cases[i].path = waitPath
		}
	}
	wantBadRequests(t, cases)
}

// TestWaitForEvents: the query that the Service gets, the greatest body that is allowed among them, and the answer.
func TestWaitForEvents(t *testing.T) {
	t.Parallel()
	var asked paddock.EventQuery
	s := serve(t, server.Options{Locks: &fake{events: func(_ context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
		asked = q
		return paddock.Page[lock.Event]{Next: "7", Gap: true, EndedSessions: []lock.SessionRef{0x7bb9f2a32ab6969f}}, nil
	}}})
	got := s.post(waitPath, `{"locks": ["a", "b:c"], "sessions": ["`+sessionName+`"], "kinds": ["revoked", "expired"], "cursor": "5", "wait_ms": 700}`)
	got.want(t, http.StatusOK, nil)
	if diff := cmp.Diff(map[string]any{
		"events": []any{}, "next_cursor": "7", "gap": true, "ended_sessions": []any{sessionName},
	}, got.body); diff != "" {
		t.Error(diff)
	}
	want := paddock.EventQuery{
		Names: []string{"a", "b:c"}, Sessions: []lock.SessionRef{0x7bb9f2a32ab6969f}, Kinds: []lock.Kind{lock.Revoked, lock.Expired},
		Cursor: "5", Limit: paddock.MaxLimit, Wait: 700 * time.Millisecond,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	names := make([]string, paddock.MaxEventNames)
	for i := range names {
		names[i] = fmt.Sprintf("%0*d", lock.MaxNameLength, i)
	}
	s.post(waitPath, `{"locks": ["`+strings.Join(names, `", "`)+`"]}`).want(t, http.StatusOK, nil)
	if asked.Cursor != paddock.CursorNow || len(asked.Names) != paddock.MaxEventNames {
		t.Errorf("asked with the cursor %q for %d locks", asked.Cursor, len(asked.Names))
	}
}
