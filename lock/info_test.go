package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-lock/paddock/lock"
)

// A waiterSummary is the part of a lock.WaiterInfo that a test compares.
type waiterSummary struct {
	Place    int64
	Attached bool
	Blocker  lock.Blocker
	Ahead    int
	Leases   int
}

func summarize(q lock.QueueInfo) []waiterSummary {
	var all []waiterSummary
	for _, v := range q.Waiters {
		all = append(all, waiterSummary{v.Place, v.Attached, v.BlockedBy, v.Ahead, len(v.Leases)})
	}
	return all
}

func TestQueueInfo(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, shared))
	w.must(acquire(2, shared))
	kept := w.enqueue(3, keep, func(a *lock.Acquire) { a.Wait = time.Second })
	w.enqueue(4)
	w.enqueue(5, shared)
	w.advance(time.Second)
	w.refused(endWait(kept), lock.ErrHeld)
	w.advance(2 * time.Second)
	q := w.record.QueueInfo(lock.View{Now: w.now, Self: 1})
	want := []waiterSummary{
		{3, false, lock.BlockedByDisconnect, 0, 0},
		{4, true, lock.BlockedByHolders, 0, 2},
		{5, true, lock.BlockedByQueue, 1, 0},
	}
	if diff := cmp.Diff(want, summarize(q)); diff != "" {
		t.Error(diff)
	}
	first := lock.WaiterInfo{
		Position: 1, Place: 3, Mode: lock.Exclusive, Holder: "worker", JoinedAt: t0, Waited: 3 * time.Second,
		KeptFor: lock.PlaceRetention - 2*time.Second, BlockedBy: lock.BlockedByDisconnect,
	}
	if diff := cmp.Diff(first, q.Waiters[0], cmpopts.IgnoreFields(lock.WaiterInfo{}, "Leases")); diff != "" {
		t.Error(diff)
	}
	if q.Waiters[1].Position != 2 || q.Waiters[1].Leases[1].Slot != 2 || q.Revision != 5 || !q.AsOf.Equal(w.now) {
		t.Errorf("the queue is %+v", q)
	}
}

func TestQueueInfoOmitsFormerWaiters(t *testing.T) {
	t.Parallel()
	t.Run("with an unclaimed grant", func(t *testing.T) {
		t.Parallel()
		w, _ := unclaimedGrant(t)
		want := []waiterSummary{{3, true, lock.BlockedByHolders, 0, 1}}
		if diff := cmp.Diff(want, summarize(w.record.QueueInfo(lock.View{Now: w.now, Self: 1}))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("with a lapsed place", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 2)
		if q := w.record.QueueInfo(lock.View{Now: w.now.Add(20*time.Second + lock.PlaceRetention), Self: 1}); len(q.Waiters) != 0 {
			t.Errorf("the queue is %+v", q)
		}
	})
	t.Run("and expired leases", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, permit(2)))
		w.must(acquire(2, permit(2), func(a *lock.Acquire) { a.TTL = time.Minute }))
		w.enqueue(3, permit(2))
		want := []waiterSummary{{3, true, lock.BlockedByHolders, 0, 0}}
		if diff := cmp.Diff(want, summarize(w.record.QueueInfo(lock.View{Now: w.now.Add(10 * time.Second), Self: 1}))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestVersionIdentifiesTheLock(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	local := w.call(acquire(2))
	remote := w.on(2).call(acquire(3))
	version, seen := w.record.Lock(w.now).Version(), map[string]bool{}
	for _, step := range []struct {
		what    string
		self    lock.Replica
		cmd     lock.Command
		changes bool
	}{
		{"a grant", 1, acquire(1), true},
		{"a renewal", 1, renew(1), false},
		{"a refused request", 1, acquire(9), false},
		{"new metadata", 1, lock.Renew{Locks: []string{name}, LeaseID: id(1), Metadata: []byte(`{"at":"a"}`)}, true},
		{"the same metadata", 1, lock.Renew{Locks: []string{name}, LeaseID: id(1), Metadata: []byte(`{"at":"a"}`)}, false},
		{"a waiter", 1, local, true},
		{"the same waiter repeated", 1, local, false},
		{"a waiter at another replica", 2, remote, true},
		{"a promotion", 1, release(1), true},
		{"a promotion at another replica", 1, release(2), true},
		{"a claim", 2, claim(remote), false},
		{"a release", 2, release(3), true},
		{"a sweep", 2, sweep, false},
	} {
		seen[version] = true
		w.on(step.self).do(step.cmd)
		v := w.record.Lock(w.now).Version()
		if (v != version) != step.changes || step.changes && seen[v] {
			t.Errorf("%s changes the version from %q to %q", step.what, version, v)
		}
		version = v
	}
}

func TestVersionChangesWithTimeAtNextChangeAt(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	if at := w.record.Lock(w.now).NextChangeAt(); !at.IsZero() {
		t.Errorf("a free lock changes at %v", at)
	}
	for n := byte(1); n <= 3; n++ {
		w.must(
			acquire(
				n,
				permit(3),
				func(a *lock.Acquire) { a.TTL, a.Grace = time.Duration(n)*time.Second, 1500*time.Millisecond },
			),
		)
	}
	var changes []time.Duration
	for l := w.record.Lock(w.now); !l.NextChangeAt().IsZero(); {
		at := l.NextChangeAt()
		changes = append(changes, at.Sub(t0))
		if v := w.record.Lock(at.Add(-1)).Version(); v != l.Version() {
			t.Errorf("version %q changed to %q before its time", l.Version(), v)
		}
		next := w.record.Lock(at)
		if held := len(next.Leases); held != len(l.Leases) && next.Version() == l.Version() {
			t.Errorf("version %q identifies %d leases and %d", l.Version(), len(l.Leases), held)
		}
		l = next
	}
	want := []time.Duration{
		time.Second, 2 * time.Second, 2500 * time.Millisecond, 3 * time.Second, 3500 * time.Millisecond, 4500 * time.Millisecond,
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
}

func TestVerifySlot(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	for n := byte(1); n <= 3; n++ {
		w.must(acquire(n, permit(3)))
	}
	w.must(release(2))
	for _, c := range []struct {
		name  string
		token lock.Token
		slot  *int
		want  lock.TokenStatus
	}{
		{"a permit that is not the newest", 1, nil, lock.Current},
		{"a permit in its slot", 1, slot(1), lock.Current},
		{"a permit in another slot", 1, slot(3), lock.Stale},
		{"the newest permit", 3, slot(3), lock.Current},
		{"the newest permit in a free slot", 3, slot(2), lock.Ended},
		{"a permit that has ended", 2, slot(2), lock.Stale},
		{"a token never granted", 4, slot(1), lock.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := lock.Verify{Name: name, Token: c.token, Slot: c.slot}.Check(w.record, w.now)
			if v.Status != c.want || v.Newest != 3 || (v.Remaining > 0) != (c.want == lock.Current) {
				t.Errorf("verification %+v", v)
			}
		})
	}
}

func TestFencedWriteBySlot(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	for n := byte(1); n <= 3; n++ {
		w.must(acquire(n, permit(3)))
	}
	w.must(release(2))
	for _, c := range []struct {
		name  string
		token lock.Token
		slot  int
		after time.Duration
		want  error
	}{
		{"is accepted with the permit of the slot", 1, 1, 0, nil},
		{"is stale with an older permit of another slot", 1, 3, 0, lock.ErrStaleToken},
		{"is unknown with a newer permit of another slot", 3, 1, 0, lock.ErrUnknownToken},
		{"is stale for a free slot", 2, 2, 0, lock.ErrStaleToken},
		{"is stale after the permit has expired, swept or not", 1, 1, 10 * time.Second, lock.ErrStaleToken},
		{"without a slot is stale unless it has the newest token", 1, 0, 0, lock.ErrStaleToken},
		{"without a slot is accepted with the newest token", 3, 0, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := lock.FencedWrite{Key: "k", Lock: name, Token: c.token, Slot: c.slot}
			newest, err := f.RequiredToken(w.record, w.now.Add(c.after))
			if err == nil {
				_, err = f.Apply(lock.FencedValue{}, newest, w.now)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("err = %v, want %v", err, c.want)
			}
		})
	}
}
