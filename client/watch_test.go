package client_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func TestWatchRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watch    paddock.Watch
		tag, uri string
	}{
		"sends the version as an entity tag": {
			paddock.Watch{Seen: "1.41.held.1.0", Wait: 30 * time.Second}, `W/"1.41.held.1.0"`, "/v1/locks/jobs:nightly?wait_ms=30000"},
		"sends no wait when there is none": {
			paddock.Watch{Seen: "1.41.held.1.0"}, `W/"1.41.held.1.0"`, "/v1/locks/jobs:nightly"},
		"sends no tag without a seen version": {
			paddock.Watch{Wait: time.Nanosecond}, "", "/v1/locks/jobs:nightly?wait_ms=1"},
		"sends no tag that could be read as several": {
			paddock.Watch{Seen: `1", W/"2`}, "", "/v1/locks/jobs:nightly"},
		"sends no tag with a line break": {
			paddock.Watch{Seen: "1\r\nX-Evil: 1"}, "", "/v1/locks/jobs:nightly"},
		"sends no overlong tag": {
			paddock.Watch{Seen: strings.Repeat("1", 100000)}, "", "/v1/locks/jobs:nightly"},
		"sends a negative wait, which the service refuses": {
			paddock.Watch{Seen: "1.41.held.1.0", Wait: -time.Hour}, `W/"1.41.held.1.0"`, "/v1/locks/jobs:nightly?wait_ms=-3600000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r request
			c.watch.Name = "jobs:nightly"
			got, err := over(t, heard(&r, http.StatusOK, freeJSON)).Watch(t.Context(), c.watch)
			if err != nil {
				t.Fatal(err)
			}
			if r.uri != c.uri || r.header.Get("If-None-Match") != c.tag {
				t.Errorf("asked for %s with the tag %q, want %s with %q", r.uri, r.header.Get("If-None-Match"), c.uri, c.tag)
			}
			if got.Revision != 2 || got.Token != 41 || got.State != lock.Free {
				t.Errorf("the lock is %+v", got)
			}
		})
	}
}

func TestAnUnchangedWatchReadsTheLockAgain(t *testing.T) {
	t.Parallel()
	var asked []string
	c := over(t, func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.Header.Get("If-None-Match")+" "+r.URL.RequestURI())
		if len(asked) == 1 {
			return reply(r, http.StatusNotModified, "", ""), nil
		}
		return reply(r, http.StatusOK, "application/json", freeJSON), nil
	})
	got, err := c.Watch(t.Context(), paddock.Watch{Name: "jobs:nightly", Seen: "2.41.free.0.0", Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 || asked[1] != " /v1/locks/jobs:nightly" {
		t.Errorf("asked for %q", asked)
	}
	if got.Revision != 2 || got.Token != 41 || got.State != lock.Free || got.AsOf.IsZero() {
		t.Errorf("the lock is %+v", got)
	}
}

func TestAnUnexpected304IsNotFromPaddock(t *testing.T) {
	t.Parallel()
	c := over(t, saying(http.StatusNotModified, "", ""))
	_, err := c.Watch(t.Context(), paddock.Watch{Name: "jobs:nightly", Wait: time.Second})
	expect(t, "Watch", err, lock.ErrUnavailable)
	expect(t, "Lock", read(c, t), lock.ErrUnavailable)
	_, err = c.Watch(t.Context(), paddock.Watch{Name: "jobs:nightly", Seen: "2.41.free.0.0"}) // 304 twice
	expect(t, "Watch", err, lock.ErrUnavailable)
	_, err = acquire(c, t)
	expect(t, "Acquire", err, lock.ErrUnknownOutcome)
}
