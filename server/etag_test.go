package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
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

// changingLock is a Service whose lock gets a new revision every second.
func changingLock(start time.Time) *fake {
	now := func() lock.Lock { return at(int64(time.Since(start) / time.Second)) }
	return &fake{
		lock: func(string) (lock.Lock, error) { return now(), nil },
		watch: func(_ context.Context, w paddock.Watch) (lock.Lock, error) {
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
	}{
		{"at once with a malformed tag", `<0>`, "9000", 200, "0", 0},
		{"at once without wait_ms", `W/"<0>"`, "0", 304, "0", 0},
		{"at once with an unknown tag", `"x"`, "9000", 200, "0", 0},
		{"until the next version", `W/"<0>"`, "9000", 200, "1", time.Second},
		{"past all listed versions", `W/"<1>", W/"<0>", "<2>"`, "9000", 200, "3", 3 * time.Second},
		{"until the wait is over", `W/"<0>", "<1>"`, "1500", 304, "1", 1500 * time.Millisecond},
		{"until the wait is over, for any version", `*`, "1500", 304, "1", 1500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s, _, end := servePiped(t, server.Options{Locks: changingLock(start)})
				got := s.getLock("/v1/locks/a?wait_ms="+c.wait, c.seen)
				if got.want(t, c.status, nil); got.Header.Get("ETag") != tags(`W/"<`+c.tag+`>"`) || time.Since(start) != c.took {
					t.Errorf("%s after %v", got.Header.Get("ETag"), time.Since(start))
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
	s := serve(t, server.Options{Locks: &fake{watch: func(context.Context, paddock.Watch) (lock.Lock, error) {
		return lock.Lock{}, &lock.Error{Code: lock.ErrTooManyWaiters}
	}}})
	got := s.getLock("/v1/locks/a?wait_ms=1", `"0.0."`)
	got.want(t, http.StatusTooManyRequests, map[string]any{"code": "too_many_waiters"})
	if got.Header.Get("ETag") != "" {
		t.Errorf("headers %v", got.Header)
	}
}
