package deployment_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// A readResult is the answer to a read of a lock.
type readResult struct {
	status int
	tag    string
	body   struct {
		State   lock.State
		Waiters int
		Token   lock.Token `json:"fencing_token"`
	}
	err error
}

// startBlockingRead reads the lock from the replica with curl, with an ETag and a query.
func (s *fixture) startBlockingRead(via replica, tag, query string) (l readResult) {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, via.base+"/v1/locks/"+s.name+query, nil)
	if err != nil {
		return readResult{err: err}
	}
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return readResult{err: err}
	}
	l.status, l.tag = res.StatusCode, res.Header.Get("ETag")
	body, err := io.ReadAll(res.Body)
	if err == nil && l.status == http.StatusOK {
		err = json.Unmarshal(body, &l.body)
	}
	l.err = errors.Join(err, res.Body.Close())
	return l
}

// TestBlockingReadReturnsWhenAnotherReplicaChangesTheLock reads from one replica and changes the lock through the
// other.
func TestBlockingReadReturnsWhenAnotherReplicaChangesTheLock(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	watched, changed := s.replicas[0], s.replicas[1]
	now := s.startBlockingRead(watched, "", "")
	var holder lock.Grant
	var waiter *caller
	for _, step := range []struct {
		what    string
		do      func()
		phase   lock.State
		waiters int
	}{
		{"a grant", func() { holder = s.mustAcquire(changed, lock.Acquire{Holder: "holder"}) }, lock.Held, 0},
		{"a waiter", func() { waiter = s.startAcquire(changed, lock.Acquire{Holder: "waiter"}) }, lock.Held, 1},
		{"a hand-over", func() { s.release(changed, holder.ID) }, lock.Held, 0},
		{"a release", func() { s.release(changed, waiter.expectGrant().ID) }, lock.Free, 0},
	} {
		seen := now
		answer := make(chan readResult, 1)
		go func() { answer <- s.startBlockingRead(watched, seen.tag, "?wait_ms=50000") }()
		step.do()
		now = s.awaitRead(step.what, answer)
		if now.status != http.StatusOK || now.tag == "" || now.tag == seen.tag || now.body.State != step.phase ||
			now.body.Waiters != step.waiters {
			t.Fatalf("after %s the answer is %+v, before it was %+v", step.what, now, seen)
		}
	}
	for _, r := range s.replicas {
		for _, query := range []string{"", "?wait_ms=20"} {
			if l := s.startBlockingRead(r, now.tag, query); l.err != nil || l.status != http.StatusNotModified ||
				l.tag != now.tag {
				t.Errorf("nothing has changed since %q, and the answer is %+v", now.tag, l)
			}
		}
		if l := s.startBlockingRead(r, "", ""); l.err != nil || l.tag != now.tag {
			t.Errorf("the tag is %q, was %q (%v)", l.tag, now.tag, l.err)
		}
	}
}

// awaitRead waits for the answer to a blocking read.
func (s *fixture) awaitRead(what string, answer <-chan readResult) readResult {
	s.Helper()
	select {
	case l := <-answer:
		s.must(l.err)
		return l
	case <-time.After(proctest.Patience):
		s.Fatalf("no answer after %s", what)
		return readResult{}
	}
}
