package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// at returns a lock at a revision.
func at(revision int64) lock.Lock { return lock.Record{Name: "a", Revision: revision}.Lock(instant) }

// tags replaces <7> by the version of the lock at revision 7, and so on.
func tags(text string) string {
	for i := range int64(9) {
		text = strings.ReplaceAll(text, fmt.Sprintf("<%d>", i), at(i).Version())
	}
	return text
}

func (s harness) getLock(path string, seen ...string) answer {
	s.t.Helper()
	r := s.request(http.MethodGet, path, "")
	for _, line := range seen {
		r.Header.Add("If-None-Match", tags(line))
	}
	return s.do(r)
}

func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{lock: func(string) (lock.Lock, error) { return at(7), nil }}})
	for _, c := range []struct {
		name   string
		seen   []string
		status int
	}{
		{"nothing", nil, 200},
		{"the tag as it was given", []string{`W/"<7>"`}, 304},
		{"a strong one", []string{`"<7>"`}, 304},
		{"anything", []string{`*`}, 304},
		{"anything, with spaces", []string{` * `}, 304},
		{"one of a list", []string{`"x", W/"<6>",W/"<7>"`}, 304},
		{"one of a list on two lines", []string{`"x"`, `W/"<7>"`}, 304},
		{"another version", []string{`W/"<6>"`}, 200},
		{"a star in quotes", []string{`"*"`}, 200},
		{"a list with a star", []string{`"x", *`}, 200},
		{"another server's tag", []string{`"686897696a7c876b7e"`}, 200},
		{"an empty tag", []string{`""`}, 200},
		{"no quotes", []string{`W/<7>`}, 200},
		{"half a quote", []string{`W/"<7>`}, 200},
		{"a small w", []string{`w/"<7>"`}, 200},
		{"a match after a syntax error", []string{`x, W/"<7>"`}, 200},
	} {
		for _, query := range []string{"", "?wait_ms=0"} {
			got := s.getLock("/v1/locks/a"+query, c.seen...)
			got.want(t, c.status, nil)
			if got.Header.Get("ETag") != tags(`W/"<7>"`) || (c.status == 304) != (got.text == "") {
				t.Errorf("%s: %d %v %q", c.name, got.StatusCode, got.Header, got.text)
			}
		}
	}
	if got := s.send(http.MethodHead, "/v1/locks/a", ""); got.Header.Get("ETag") != tags(`W/"<7>"`) {
		t.Errorf("HEAD: %v", got.Header)
	}
}

// changingLock is a Service whose lock gets a new revision every second. It records the versions that Watch was called
// with.
func changingLock(start time.Time, asked *[]string) *fake {
	now := func() lock.Lock { return at(int64(time.Since(start) / time.Second)) }
	return &fake{
		lock: func(string) (lock.Lock, error) { return now(), nil },
		watch: func(_ context.Context, w lock.Watch) (lock.Lock, error) {
			*asked = append(*asked, w.Seen)
			for over := time.Now().Add(w.Wait); w.Seen == now().Version() && time.Now().Before(over); {
				<-time.After(min(time.Second-time.Since(start)%time.Second, time.Until(over)))
			}
			return now(), nil
		},
	}
}

func TestGetLockWaitsForAChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, seen, wait string
		status           int
		tag              string
		took             time.Duration
		asked            string // the versions that Watch is called with
	}{
		{"at once with a malformed tag", `<0>`, "9000", 200, "0", 0, ""},
		{"at once without wait_ms", `W/"<0>"`, "0", 304, "0", 0, ""},
		{"at once with an unknown tag", `"x"`, "9000", 200, "0", 0, "x"},
		{"until the next version", `W/"<0>"`, "9000", 200, "1", time.Second, "<0>"},
		{"past all listed versions", `W/"<1>", W/"<0>", "<2>"`, "9000", 200, "3", 3 * time.Second,
			"<1> <0> <1> <2>"},
		{"until the wait is over", `W/"<0>", "<1>"`, "1500", 304, "1", 1500 * time.Millisecond, "<0> <1>"},
		{"until the wait is over, for any version", `*`, "1500", 304, "1", 1500 * time.Millisecond, " <0> <1>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var asked []string
				s, _, end := servePiped(t, server.Options{Locks: changingLock(start, &asked)})
				got := s.getLock("/v1/locks/a?wait_ms="+c.wait, c.seen)
				if got.want(t, c.status, nil); got.Header.Get("ETag") != tags(`W/"<`+c.tag+`>"`) || time.Since(start) != c.took {
					t.Errorf("%s after %v", got.Header.Get("ETag"), time.Since(start))
				}
				if got := strings.Join(asked, " "); got != tags(c.asked) {
					t.Errorf("asked for %q", got)
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestFailedGetLockHasNoETag(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{watch: func(context.Context, lock.Watch) (lock.Lock, error) {
		return lock.Lock{}, &lock.Error{Code: lock.ErrTooManyWaiters}
	}}})
	got := s.getLock("/v1/locks/a?wait_ms=1", `"0.0."`)
	got.want(t, http.StatusTooManyRequests, map[string]any{"code": "too_many_waiters"})
	if got.Header.Get("ETag") != "" {
		t.Errorf("headers %v", got.Header)
	}
}

func TestQueueIsAnswered(t *testing.T) {
	t.Parallel()
	lease := lock.Lease{Name: "a", Slot: 1, Mode: lock.Permit, Holder: "h", Token: 41, TTL: time.Minute, AcquiredAt: instant, ExpiresAt: instant.Add(time.Minute)}
	waiter := lock.Waiter{Place: 2, Capacity: 1, JoinedAt: instant.Add(-time.Second), Attachment: 5, Replica: 6, WaitUntil: instant.Add(time.Minute),
		Lease: lock.Lease{Mode: lock.Permit, Holder: "w"}, KeptUntil: instant.Add(9 * time.Second)}
	left := waiter
	waiter.Lease.ID, left.Lease.ID = lock.LeaseID{1}, lock.LeaseID{2}
	left.Place, left.Attachment, left.Lease.Mode, left.Capacity = 3, 0, lock.Exclusive, 0
	state := lock.Record{Name: "a", Revision: 3, Token: 41, Capacity: 1, Leases: []lock.Lease{lease}, Queue: []*lock.Waiter{&waiter, &left}}
	s := serve(t, server.Options{Locks: &fake{
		queue: func(string) (lock.QueueInfo, error) { return state.QueueInfo(instant, 6), nil },
		lock:  func(string) (lock.Lock, error) { return state.Lock(instant), nil },
	}})
	got := s.get("/v1/locks/a/queue")
	got.want(t, http.StatusOK, map[string]any{"name": "a", "revision": 3.0, "as_of": "2026-01-02T03:04:05.678901Z"})
	holding := []any{map[string]any{
		"slot": 1.0, "mode": "permit", "holder": "h", "fencing_token": 41.0, "grace_ms": 0.0, "expires_in_ms": 60000.0,
		"acquired_at": "2026-01-02T03:04:05.678901Z", "expires_at": "2026-01-02T03:05:05.678901Z",
	}}
	if diff := cmp.Diff([]any{map[string]any{
		"position": 1.0, "place": 2.0, "mode": "permit", "capacity": 1.0, "holder": "w", "joined_at": "2026-01-02T03:04:04.678901Z",
		"waited_ms": 1000.0, "attached": true, "ahead": 0.0, "blocked_by": "holders", "leases": holding,
	}, map[string]any{
		"position": 2.0, "place": 3.0, "mode": "exclusive", "holder": "w", "joined_at": "2026-01-02T03:04:04.678901Z",
		"waited_ms": 1000.0, "attached": false, "place_kept_ms": 9000.0, "ahead": 1.0, "blocked_by": "disconnected", "leases": []any{},
	}}, got.body["waiters"]); diff != "" {
		t.Error(diff)
	}
	s.get("/v1/locks/a").want(t, http.StatusOK, map[string]any{"capacity": 1.0, "waiters": 2.0})
	none := serve(t, server.Options{Locks: &fake{}}).get("/v1/locks/queue/queue")
	if none.want(t, http.StatusOK, map[string]any{"name": "queue"}); !strings.Contains(none.text, `"waiters":[]`) {
		t.Errorf("an empty queue: %s", none.text)
	}
}
