package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// follow opens a stream with the key of this name.
func (k *keyring) follow(s harness, name string) stream {
	k.t.Helper()
	s.client = &http.Client{Transport: authTransport{k, name, s.client.Transport}}
	return s.stream("/v1/events/stream?prefix=billing:", "")
}

// An authTransport is a RoundTripper that adds a key.
type authTransport struct {
	*keyring
	name string
	next http.RoundTripper
}

// RoundTrip sends the request with the key.
func (s authTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.next.RoundTrip(s.authorize(r.Clone(r.Context()), s.name))
}

// TestStreamEndsWithItsKey revokes a key, and lets one expire, while no event happens.
func TestStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(*keyring)
		within time.Duration
		why    string
	}{
		"revoked": {func(k *keyring) { k.revoke("passing") }, 5 * time.Second, "key_invalid; reconnect with a valid key"},
		"expired": {func(*keyring) {}, server.WriteTimeout, "key_expired; reconnect with a valid key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newKeyring(t, access.Key{Name: "passing", Role: access.Read, Prefixes: []string{"billing"}, ExpiresAt: time.Now().Add(server.WriteTimeout)})
				s, _, end := servePiped(t, server.Options{Locks: access.Guard(memlock.New().Replica(1), access.Limits{}), Keys: k.Keyring})
				passing, right := k.follow(s, "passing"), k.follow(s, "right")
				passing.want(synced("0"))
				right.want(synced("0"))
				c.end(k)
				start := time.Now()
				for next := passing.next(); next.comment != c.why; next = passing.next() {
					if next.ended || next.comment != "still here" {
						t.Fatalf("received %+v", next)
					}
				}
				passing.want(message{ended: true})
				if took := time.Since(start); took > c.within {
					t.Errorf("continued for %v", took)
				}
				right.want(message{comment: "still here"})
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestStreamCountsAsOneCall sends more events than the rate limit allows calls.
func TestStreamCountsAsOneCall(t *testing.T) {
	t.Parallel()
	k, h := newKeyring(t), new(fakeEvents)
	s := serve(t, server.Options{Locks: access.Guard(&fake{events: h.events}, access.Limits{Rate: 0.001, Burst: 1, Waiters: 1}), Keys: k.Keyring})
	h.add(3 * server.StreamPage)
	r := k.authorize(s.request(http.MethodGet, "/v1/events?lock=a", ""), "read")
	s.do(r).want(t, http.StatusOK, nil)
	s.do(r.Clone(t.Context())).want(t, http.StatusTooManyRequests, map[string]any{"code": "rate_limited"})
	s.client = &http.Client{Transport: authTransport{k, "admin", s.client.Transport}}
	all := s.stream("/v1/events/stream?cursor=0", "")
	all.wantNews(1, 3*server.StreamPage)
	all.want(synced("600"))
	h.add(1)
	all.want(news(601))
}

func TestStreamsPerKeyAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeyring(t)
		s, _, end := servePiped(t, server.Options{
			Locks: access.Guard(&fake{events: new(fakeEvents).events}, access.Limits{}), Keys: k.Keyring, MaxStreams: 4, StreamsPerKey: 2,
		})
		refused := func(name string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // an accepted stream would not end
			defer cancel()
			got, err := s.client.Do(k.authorize(s.request(http.MethodGet, "/v1/events/stream?prefix=billing:", "").WithContext(ctx), name))
			if err != nil {
				t.Error(err)
				return
			}
			text, err := io.ReadAll(got.Body)
			if err = errors.Join(err, got.Body.Close()); err != nil || got.StatusCode != http.StatusTooManyRequests || !bytes.Contains(text, []byte("too_many_waiters")) {
				t.Errorf("one more with the key %s: %d, %v\n%s", name, got.StatusCode, err, text)
			}
		}
		first := k.follow(s, "read")
		first.want(synced("0"))
		k.follow(s, "read").want(synced("0"))
		refused("read")
		k.follow(s, "right").want(synced("0"))
		k.follow(s, "right").want(synced("0"))
		refused("lock")
		first.close()
		synctest.Wait()
		refused("right")
		k.follow(s, "read").want(synced("0"))
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestWaitEndsWithItsKey revokes the key of a waiting call, which must be refused and leave the queue.
func TestWaitEndsWithItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, locks := newKeyring(t), memlock.New().Replica(1)
		s, _, end := servePiped(t, server.Options{Locks: access.Guard(locks, access.Limits{}), Keys: k.Keyring})
		if _, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One("billing:a"), Holder: "h", TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		got := make(chan answer, 1)
		go func() {
			r := s.request(http.MethodPost, "/v1/locks/billing:a/acquire", `{"holder": "w", "wait_ms": 50000}`)
			got <- s.do(k.authorize(r, "right"))
		}()
		synctest.Wait()
		k.revoke("right")
		start := time.Now()
		(<-got).want(t, http.StatusUnauthorized, map[string]any{"code": "key_invalid"})
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("waited for another %v", took)
		}
		queue, err := locks.Queue(t.Context(), "billing:a")
		if err != nil || len(queue.Waiters) != 0 {
			t.Errorf("%v %v", queue, err)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
