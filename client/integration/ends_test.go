package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// An eventsMeter is a transport that looks at the requests which wait for events.
type eventsMeter struct {
	http.Transport
	mu                   sync.Mutex
	open, most           int
	locks, namedSessions int // that the last request names
}

func (m *eventsMeter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/v1/events/wait" {
		return m.Transport.RoundTrip(req)
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	var asked struct{ Locks, Sessions []string }
	if err := json.NewDecoder(body).Decode(&asked); err != nil {
		return nil, err
	}
	m.add(1)
	m.mu.Lock()
	m.locks, m.namedSessions = len(asked.Locks), len(asked.Sessions)
	m.mu.Unlock()
	res, err := m.Transport.RoundTrip(req)
	if err != nil {
		m.add(-1)
		return nil, err
	}
	res.Body = &meteredBody{res.Body, sync.OnceFunc(func() { m.add(-1) })}
	return res, nil
}

func (m *eventsMeter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += n
	m.most = max(m.most, m.open)
}

// named reports whether a request that waits names as many locks and sessions.
func (m *eventsMeter) named(locks, sessions int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open == 1 && m.locks == locks && m.namedSessions == sessions
}

type meteredBody struct {
	io.ReadCloser
	done func()
}

func (b *meteredBody) Close() error {
	b.done()
	return b.ReadCloser.Close()
}

// TestRevocationsAreHeardAtOnce has a thousand guards with a TTL of ten minutes in one client. An operator at another
// replica revokes leases and sessions. Without a word from the service the next renewal is due after three minutes.
func TestRevocationsAreHeardAtOnce(t *testing.T) {
	t.Parallel()
	const (
		many = 1000
		ttl  = 10 * time.Minute
		soon = ttl / 20
	)
	database := pgtest.URL(t)
	meter := &eventsMeter{Transport: http.Transport{MaxIdleConnsPerHost: 64}}
	locks := replica.Connect(t, client.Options{BaseURL: replica.Start(t, database), HTTP: &http.Client{Transport: meter}})
	operator := replica.Client(t, database)

	leases := make([]*guard.Lease, many)
	var all sync.WaitGroup
	for i := range leases {
		all.Go(func() {
			var err error
			if leases[i], err = guard.Acquire(t.Context(), locks, fmt.Sprintf("jobs:%d", i), guard.Options{TTL: ttl}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	set, err := guard.AcquireAll(t.Context(), locks, []lock.Member{{Name: "set:a"}, {Name: "set:b"}}, guard.Options{TTL: ttl})
	must(err)
	var sessions []*guard.Session
	var members []*guard.Lease
	for i := range 3 {
		s, err := guard.OpenSession(t.Context(), locks, guard.SessionOptions{TTL: ttl})
		must(err)
		m, err := guard.Acquire(t.Context(), locks, fmt.Sprintf("session:%d", i), guard.Options{Session: s})
		must(err)
		sessions, members = append(sessions, s), append(members, m)
	}
	await.Until(t, "one request names all locks and sessions", func() bool { return meter.named(many+2+len(members), len(sessions)) })

	revoke := func(name string, token lock.Token) {
		_, err := operator.Revoke(t.Context(), lock.Revoke{Name: name, Token: token, Reason: "the disk is full"})
		must(err)
	}
	for _, c := range []struct {
		what string
		do   func()
		done <-chan struct{}
		err  func() error
		code lock.Code
	}{
		{"a lease", func() { revoke("jobs:7", leases[7].Token()) }, leases[7].Done(), leases[7].Err, lock.ErrLeaseLost},
		{"a lock of a set", func() { revoke("set:b", set.TokenOf("set:b")) }, set.Done(), set.Err, lock.ErrLeaseLost},
		{"a lease of a session", func() { revoke("session:0", members[0].Token()) }, members[0].Done(), members[0].Err, lock.ErrLeaseLost},
		{"a session", func() {
			_, err := operator.RevokeSession(t.Context(), lock.RevokeSession{Ref: sessions[1].Ref(), Reason: "the disk is full"})
			must(err)
		}, sessions[1].Done(), sessions[1].Err, lock.ErrSessionLost},
		{"a session that was closed", func() {
			must(operator.CloseSession(t.Context(), lock.CloseSession{ID: sessions[2].ID()}))
		}, sessions[2].Done(), sessions[2].Err, lock.ErrSessionLost},
	} {
		begun := time.Now()
		c.do()
		select {
		case <-c.done:
			t.Logf("the loss of %s was heard after %v", c.what, time.Since(begun))
		case <-time.After(soon):
			t.Errorf("the loss of %s was not heard in %v", c.what, soon)
		}
		var e *lock.Error
		if err := c.err(); !errors.As(err, &e) || e.Code != c.code || c.what != "a session that was closed" && e.Reason != "the disk is full" {
			t.Errorf("the loss of %s is %v", c.what, err)
		}
	}
	for i, l := range leases {
		if err := l.Err(); i != 7 && err != nil {
			t.Errorf("lease %d is lost: %v", i, err)
		}
	}
	if meter.most != 1 {
		t.Errorf("%d requests for events were open at a time, want 1", meter.most)
	}
	for i, l := range leases {
		all.Go(func() {
			if err := l.Release(t.Context()); i != 7 && err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	must(sessions[0].Close(t.Context()))
	page, err := operator.Events(t.Context(), paddock.EventQuery{Kinds: []lock.Kind{lock.Expired}})
	if err != nil || len(page.Items) > 0 {
		t.Errorf("leases have expired: %v, %v", page.Items, err)
	}
}
