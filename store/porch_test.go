package store

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// queued returns how many wait for the lock "a".
func queued(t *testing.T, s *Store) int {
	t.Helper()
	q, err := s.Queue(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return len(q.Waiters)
}

// standing returns how many stand on the porch.
func (p *porch) standing() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// TestWhoMustWaitWaitsForCompany, and joins the queue ahead of it.
func TestWhoMustWaitWaitsForCompany(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	p := s.group("a")
	g, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "holder"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan string, 3)
	wait := func(holder string) {
		go func() {
			if _, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: holder, Wait: lock.LongestWait, TTL: 300 * time.Millisecond}); err != nil {
				t.Error(err)
			}
			served <- holder
		}()
	}
	wait("first")
	for queued(t, s) < 1 || !s.crowd.waits("a") {
	}
	wait("second") // it does not wait for ever
	for queued(t, s) < 2 {
	}
	p.mu.Lock()
	p.patience = time.Hour
	p.mu.Unlock()
	wait("third")
	for p.standing() < 1 {
	}
	if n := queued(t, s); n != 2 {
		t.Errorf("%d wait, and the third has no company yet", n)
	}
	if err := s.Release(t.Context(), lock.Release{Name: "a", LeaseID: g.ID}); err != nil {
		t.Fatal(err)
	}
	if n := p.standing(); n != 0 {
		t.Errorf("%d stand there still", n)
	}
	page, err := s.Events(t.Context(), lock.EventQuery{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	joined, released := page.Items[3], page.Items[4]
	if joined.Kind != lock.Queued || joined.Holder != "third" || released.Kind != lock.Released || !joined.At.Equal(released.At) {
		t.Errorf("not in one transaction, in that order: %+v, %+v", joined, released)
	}
	for _, want := range []string{"first", "second", "third"} {
		if got := <-served; got != want {
			t.Errorf("%s was served, want %s", got, want)
		}
	}
}
