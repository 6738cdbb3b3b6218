package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// An observer remembers what it sees.
type observer struct {
	observe.Nothing
	mu       sync.Mutex
	renewed  int
	ended    []lock.Kind
	rounds   int
	handOffs []time.Duration
}

func (o *observer) Decided(d *lock.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d.Renewed {
		o.renewed++
	}
	for _, e := range d.Ended {
		o.ended = append(o.ended, e.How)
	}
}

func (o *observer) Round(observe.Round) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rounds++
}

func (o *observer) HandedOver(took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handOffs = append(o.handOffs, took)
}

// TestAnObserverSeesEachDecisionOnce, and each hand-off at the replica of the waiting call, whichever has decided it.
func TestAnObserverSeesEachDecisionOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	var here, there observer
	a, b := replica.Store(t, url, store.Options{Observer: &here}), replica.Store(t, url, store.Options{Observer: &there})
	for i, waitsAt := range []*store.Store{a, b} {
		g := take(t, a, lock.Acquire{Name: "x", LeaseID: lock.LeaseID(uuid.New()), Holder: "first", TTL: time.Minute})
		done := make(chan lock.Grant)
		go func() {
			done <- take(t, waitsAt, lock.Acquire{Name: "x", LeaseID: lock.LeaseID(uuid.New()), Holder: "second", TTL: time.Minute, Wait: lock.MaxWait})
		}()
		until(t, "the second waits", func() bool {
			l, err := a.Lock(t.Context(), "x")
			return err == nil && l.Waiters == 1
		})
		if n := waitsAt.Stats().Waiting; n != 1 {
			t.Errorf("%d calls wait at replica %d", n, i)
		}
		if _, err := a.Renew(t.Context(), lock.Renew{Name: "x", LeaseID: g.ID}); err != nil {
			t.Fatal(err)
		}
		give(t, a, g)
		give(t, waitsAt, <-done)
	}
	a.Close()
	b.Close()
	if here.renewed != 2 || len(here.ended) != 3 || len(there.ended) != 1 || here.rounds < 8 || there.rounds < 3 {
		t.Errorf("here %+v, there %+v", &here, &there)
	}
	if len(here.handOffs) != 1 || len(there.handOffs) != 1 || here.handOffs[0] <= 0 || there.handOffs[0] <= 0 {
		t.Errorf("hand-offs took %v here and %v there", here.handOffs, there.handOffs)
	}
}

// TestStats of a replica that has just started, and of its database.
func TestStats(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	take(t, s, lock.Acquire{Name: "x", LeaseID: lock.LeaseID(uuid.New()), Holder: "me", TTL: time.Minute})
	until(t, "the locks are counted", func() bool { return s.Stats().Locks.Held == 1 })
	tasks := []string{"scan", "heartbeat", "epoch check", "listener"}
	until(t, "all tasks have succeeded", func() bool {
		for _, task := range tasks {
			if s.Stats().Tasks[task].IsZero() {
				return false
			}
		}
		return true
	})
	got := s.Stats()
	if got.Epoch != 1 || got.GrantsPaused != 0 || got.LateCommits != 0 || got.Waiting != 0 || got.Locks.All != 1 {
		t.Errorf("%+v", got)
	}
	for i, name := range []string{"deciding", "rest"} {
		if p := got.Pools[i]; p.Name != name || p.Max < 1 || p.Made < 1 || p.Acquired < 1 || p.Idle+p.InUse < 1 {
			t.Errorf("%+v", p)
		}
	}
}

// TestStatsTellOfAPause that an operator or a fail-over has begun.
func TestStatsTellOfAPause(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	exec(t, connect(t, url), "update paddock.epochs set closed_until = clock_timestamp() + interval '1 hour'")
	until(t, "the pause is known", func() bool { return s.Stats().GrantsPaused > 59*time.Minute })
}
