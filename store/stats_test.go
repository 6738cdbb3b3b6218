package store_test

import (
	"errors"
	"slices"
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
	observe.Observer // nil: it has all methods that a Store calls
	mu               sync.Mutex
	renewed          int
	ended            []lock.Kind
	rounds           int
	handOffs         []time.Duration
	calls            []observe.Call
	tasks            []string // that have succeeded
}

func (o *observer) Call(c observe.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, c)
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

func (o *observer) Succeeded(task string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tasks = append(o.tasks, task)
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
		g := take(t, a, lock.Acquire{Locks: lock.One("x"), LeaseID: lock.LeaseID(uuid.New()), Holder: "first", TTL: time.Minute})
		done := make(chan lock.Grant)
		go func() {
			done <- take(t, waitsAt, lock.Acquire{Locks: lock.One("x"), LeaseID: lock.LeaseID(uuid.New()), Holder: "second", TTL: time.Minute, Wait: lock.MaxWait})
		}()
		until(t, "the second waits", func() bool {
			l, err := a.Lock(t.Context(), "x")
			return err == nil && l.Waiters == 1
		})
		if n := waitsAt.Stats().Waiting; n != 1 {
			t.Errorf("%d calls wait at replica %d", n, i)
		}
		if _, err := a.Renew(t.Context(), lock.Renew{Locks: []string{"x"}, LeaseID: g.ID}); err != nil {
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

// TestAnObserverSeesEachCall, and each item of a batch like a call of its own: once, with its outcome. A call about a set
// is one call, with the mode of the first lock in the request.
func TestAnObserverSeesEachCall(t *testing.T) {
	t.Parallel()
	var seen observer
	s := replica.Store(t, pgtest.URL(t), store.Options{Observer: &seen})
	ctx := t.Context()
	first := lock.Acquire{Locks: []lock.Member{{Name: "x", Mode: lock.Shared}}, LeaseID: newID(), Holder: "me", TTL: time.Minute}
	set := lock.Acquire{LeaseID: newID(), Holder: "me", TTL: time.Minute, Locks: []lock.Member{{Name: "z", Mode: lock.Permit, Capacity: 2}, {Name: "y"}}}
	other, newer, waits := acquire("x"), acquire("x"), acquire("x")
	waits.Wait = time.Millisecond
	token := mustAcquire(t, s, first).Token
	id := lock.SessionID(uuid.New())
	open := lock.OpenSession{ID: id, Holder: "me", TTL: time.Minute}
	write := lock.FencedWrite{Key: "k", Lock: "x", Token: token, Value: []byte("1")}
	one := func(_ any, err error) error { return err }
	for i, c := range []struct {
		call func() error
		want observe.Call
	}{
		{func() error { return one(s.Acquire(ctx, first)) }, observe.Call{Op: observe.Acquire, Mode: lock.Shared, Replayed: true}},
		{func() error { return one(s.Acquire(ctx, other)) }, observe.Call{Op: observe.Acquire, Mode: lock.Exclusive, Err: lock.ErrHeld}},
		{func() error { return one(s.Acquire(ctx, waits)) }, observe.Call{Op: observe.Acquire, Mode: lock.Exclusive, Waited: 1, Err: lock.ErrHeld}},
		{func() error { return one(s.Acquire(ctx, lock.Acquire{})) }, observe.Call{Op: observe.Acquire, Mode: lock.Exclusive, Err: lock.ErrInvalid}},
		{func() error { return one(s.Acquire(ctx, set)) }, observe.Call{Op: observe.Acquire, Mode: lock.Permit}},
		{func() error { return one(s.Renew(ctx, lock.Renew{Locks: []string{"y", "z"}, LeaseID: set.LeaseID})) }, observe.Call{Op: observe.Renew}},
		{func() error { return one(s.Renew(ctx, lock.Renew{Locks: []string{"y"}, LeaseID: set.LeaseID})) }, observe.Call{Op: observe.Renew, Err: lock.ErrLeaseInSet}},
		{func() error { return one(s.Renew(ctx, lock.Renew{})) }, observe.Call{Op: observe.Renew, Err: lock.ErrInvalid}},
		{func() error { return one(s.WriteFenced(ctx, write)) }, observe.Call{Op: observe.WriteFenced}},
		{func() error { return one(s.VerifyToken(ctx, lock.Verify{Name: "x", Token: token})) }, observe.Call{Op: observe.VerifyToken}},
		{func() error { return s.Release(ctx, lock.Release{Locks: []string{"x"}, LeaseID: first.LeaseID}) }, observe.Call{Op: observe.Release}},
		{func() error { return s.Release(ctx, lock.Release{Locks: []string{"x"}, LeaseID: newID()}) }, observe.Call{Op: observe.Release, Err: lock.ErrLeaseLost}},
		{func() error { return s.Release(ctx, lock.Release{}) }, observe.Call{Op: observe.Release, Err: lock.ErrInvalid}},
		{func() error { return one(s.Acquire(ctx, newer)) }, observe.Call{Op: observe.Acquire, Mode: lock.Exclusive}},
		{func() error { return one(s.VerifyToken(ctx, lock.Verify{Name: "x", Token: token})) }, observe.Call{Op: observe.VerifyToken, Stale: true}},
		{func() error { return one(s.WriteFenced(ctx, write)) }, observe.Call{Op: observe.WriteFenced, Stale: true, Err: lock.ErrStaleToken}},
		{func() error { return one(s.ReportStale(ctx, lock.ReportStale{Name: "x", Token: token})) }, observe.Call{Op: observe.ReportStale, Stale: true}},
		{func() error { return one(s.OpenSession(ctx, open)) }, observe.Call{Op: observe.OpenSession}},
		{func() error { return one(s.OpenSession(ctx, open)) }, observe.Call{Op: observe.OpenSession, Replayed: true}},
		{func() error { return one(s.RenewSession(ctx, lock.RenewSession{ID: id})) }, observe.Call{Op: observe.RenewSession}},
		{func() error { return one(s.RevokeSession(ctx, lock.RevokeSession{Ref: id.Ref(), Reason: "test"})) }, observe.Call{Op: observe.RevokeSession}},
		{func() error { return s.CloseSession(ctx, lock.CloseSession{ID: id}) }, observe.Call{Op: observe.CloseSession, Err: lock.ErrSessionLost}},
	} {
		seen.calls = nil
		if err := c.call(); !errors.Is(err, c.want.Err) {
			t.Fatalf("call %d: %v", i, err)
		}
		if len(seen.calls) != 1 || !sameCall(seen.calls[0], c.want) {
			t.Errorf("call %d is seen as %+v, want %+v", i, seen.calls, c.want)
		}
	}
	seen.calls = nil
	s.Batch(ctx, []lock.Command{newer, lock.Renew{Locks: []string{"x"}, LeaseID: newer.LeaseID}, lock.Release{Locks: []string{"x"}, LeaseID: newer.LeaseID}, lock.Sweep{}})
	for i, want := range []observe.Call{{Op: observe.Acquire, Mode: lock.Exclusive, Replayed: true}, {Op: observe.Renew}, {Op: observe.Release}} {
		if len(seen.calls) != 3 || !sameCall(seen.calls[i], want) {
			t.Errorf("the items of a batch are seen as %+v", seen.calls)
		}
	}
}

// sameCall reports whether the call is as wanted, with a wait of any length if one is wanted.
func sameCall(c, want observe.Call) bool {
	same := errors.Is(c.Err, want.Err) && (c.Waited > 0) == (want.Waited > 0)
	c.Err, c.Waited, want.Err, want.Waited = nil, 0, nil, 0
	return same && c == want
}

// TestStats of a replica that has just started, and of its database.
func TestStats(t *testing.T) {
	t.Parallel()
	var seen observer
	s := replica.Store(t, pgtest.URL(t), store.Options{Observer: &seen})
	take(t, s, lock.Acquire{Locks: lock.One("x"), LeaseID: lock.LeaseID(uuid.New()), Holder: "me", TTL: time.Minute})
	until(t, "the locks are counted", func() bool { return s.Stats().Locks.Held == 1 })
	tasks := []string{"scan", "heartbeat", "epoch check", "listener"}
	until(t, "all tasks have succeeded", func() bool {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return !slices.ContainsFunc(tasks, func(task string) bool { return !slices.Contains(seen.tasks, task) })
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

// TestStatsTellOfFreezes that are in force, and of the oldest one that somebody has to end.
func TestStatsTellOfFreezes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	if _, err := s.Freeze(t.Context(), lock.FreezeRequest{Scope: "a:", Reason: "r", For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	until(t, "a freeze with an end is counted", func() bool { got := s.Stats(); return got.Freezes == 1 && got.EndlessFreeze == 0 })
	freeze(t, s, "b:")
	freeze(t, s, "c:")
	until(t, "all are counted", func() bool { return s.Stats().Freezes == 3 })
	for first := s.Stats().EndlessFreeze; s.Stats().EndlessFreeze <= first; {
		time.Sleep(time.Millisecond)
	}
	thaw(t, s, "b:")
	thaw(t, s, "c:")
	until(t, "none without an end is left", func() bool { got := s.Stats(); return got.Freezes == 1 && got.EndlessFreeze == 0 })
}
