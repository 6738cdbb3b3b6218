package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

func TestAcquireReachesTheServiceUnchanged(t *testing.T) {
	t.Parallel()
	var got lock.Acquire
	s := serve(t, server.Options{Locks: &fake{acquire: func(_ context.Context, a lock.Acquire) (lock.Grant, error) {
		got = a
		return grantOf(a), nil
	}}})
	answer := s.post("/v1/locks/jobs%3Anightly/acquire", `{"lease_id": "`+leaseID+`", "holder": "<é>", "mode": "exclusive", "ttl_ms": 20000,
		"grace_ms": 2000, "max_hold_ms": 3600000, "metadata": {"host": "db-3", "none": null}}`)
	want := lock.Acquire{
		Locks: []lock.Member{{Name: "jobs:nightly", Mode: lock.Exclusive}}, LeaseID: lock.LeaseID(uuid.MustParse(leaseID)), Holder: "<é>",
		TTL: 20 * time.Second, Grace: 2 * time.Second, MaxHold: time.Hour, Metadata: []byte(`{"host": "db-3", "none": null}`),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(lock.Acquire{})); diff != "" {
		t.Error(diff)
	}
	answer.want(t, http.StatusCreated, map[string]any{
		"name": "jobs:nightly", "lease_id": leaseID, "fencing_token": 41.0, "mode": "exclusive", "holder": "<é>",
		"ttl_ms": 20000.0, "grace_ms": 2000.0, "max_hold_ms": 3600000.0,
		"acquired_at": "2026-01-02T03:04:05.678901Z", "expires_at": "2026-01-02T03:04:25.678901Z",
	})
	if !strings.Contains(answer.text, `"holder":"<é>"`) || !strings.Contains(answer.text, `"metadata":{"host":"db-3","none":null}`) {
		t.Errorf("not as it was sent: %s", answer.text)
	}
}

func TestExpiresInNeverExceedsTheLease(t *testing.T) {
	t.Parallel()
	until := time.Now()
	s := serve(t, server.Options{Locks: &fake{acquire: func(_ context.Context, a lock.Acquire) (lock.Grant, error) {
		g := grantOf(a)
		g.Until, g.Replayed = until, true
		return g, nil
	}}})
	s.post(acquirePath, `{"holder": "a"}`).want(t, http.StatusOK, map[string]any{"expires_in_ms": 0.0})
	until = time.Now().Add(time.Hour)
	left := s.post(acquirePath, `{"holder": "a"}`).body["expires_in_ms"].(float64)
	if most := time.Hour.Milliseconds(); left <= 0 || left >= float64(most) {
		t.Errorf("expires_in_ms is %v of %d", left, most)
	}
}

func TestVersionIsThatOfTheBuild(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Version: server.Version{Version: "1.2.3", Commit: "abc", Schema: "team_b"}})
	s.get("/version").want(t, http.StatusOK, map[string]any{"version": "1.2.3", "commit": "abc", "schema": "team_b"})
}

func TestPagesLinkToTheNext(t *testing.T) {
	t.Parallel()
	var locks paddock.LockQuery
	var events paddock.EventQuery
	page := paddock.Page[lock.Event]{Next: "12"}
	s := serve(t, server.Options{Locks: &fake{
		locks: func(q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
			locks = q
			return paddock.Page[lock.Lock]{Items: []lock.Lock{lock.Record{Name: "a:b"}.Lock(instant)}, Next: "YT/i+"}, nil
		},
		events: func(_ context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
			events = q
			return page, nil
		},
	}})
	got := s.get("/v1/locks?prefix=a:&state=free&holder=h%20h&limit=7&cursor=c")
	if want := (paddock.LockQuery{Prefix: "a:", State: lock.Free, Holder: "h h", Limit: 7, Cursor: "c"}); locks != want {
		t.Errorf("asked for %+v", locks)
	}
	if link := got.Header.Get("Link"); link != `<?cursor=YT%2Fi%2B&holder=h+h&limit=7&prefix=a%3A&state=free>; rel="next"` {
		t.Errorf("Link: %s", link)
	}
	got.want(t, http.StatusOK, map[string]any{"next_cursor": "YT/i+"})

	got = s.get("/v1/events?lock=a:b&limit=7&cursor=")
	if diff := cmp.Diff(paddock.EventQuery{Names: []string{"a:b"}, Limit: 7}, events, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("asked for: %s", diff)
	}
	if got.want(t, http.StatusOK, map[string]any{"next_cursor": "12", "gap": nil}); got.Header.Get("Link") != "" || !strings.Contains(got.text, `"events":[]`) {
		t.Errorf("an empty page has a link: %v %s", got.Header, got.text)
	}
	page.Items = []lock.Event{{ID: 7, At: instant, Name: "a:b", Revision: 1, Kind: lock.Revoked, Mode: lock.Exclusive, Holder: "h", Token: 41, Reason: "r"}}
	if got = s.get("/v1/events"); got.Header.Get("Link") != `<?cursor=12>; rel="next"` {
		t.Errorf("Link: %q", got.Header.Get("Link"))
	}
	event := got.body["events"].([]any)[0]
	if diff := cmp.Diff(map[string]any{
		"id": 7.0, "at": "2026-01-02T03:04:05.678901Z", "lock": "a:b", "slot": 0.0, "revision": 1.0, "kind": "revoked", "mode": "exclusive",
		"holder": "h", "fencing_token": 41.0, "reason": "r",
	}, event); diff != "" {
		t.Error(diff)
	}
}
