package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

func rowOf(name string, xmin uint32) *row.Row {
	return &row.Row{Record: lock.Record{Name: name}, Xmin: xmin}
}

// TestTheCacheIsBounded: locks that were not used for longest are dropped first, and long queues and much metadata
// count.
func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	metadata := make([]byte, lock.MaxMetadataSize)
	for name, record := range map[string]lock.Record{
		"held":              {Leases: make([]lock.Lease, 1)},
		"with a queue":      {Queue: []*lock.Waiter{{}, {}, {}}},
		"with metadata":     {Leases: []lock.Lease{{Metadata: metadata}}},
		"they wait so, too": {Queue: []*lock.Waiter{{Lease: lock.Lease{Metadata: metadata}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c cache
			weighs := weight(&record)
			most := maxCached + 2*weighs
			n := 3 * maxCached / 2 / weighs
			c.put(rowOf("often", 1))
			for i := range n {
				record.Name = fmt.Sprint(i)
				c.put(&row.Row{Record: record})
				if i%100 == 0 {
					c.get("often")
				}
				if c.young.weight+c.old.weight > most || (len(c.young.rows)+len(c.old.rows))*weighs > most {
					t.Fatalf("%d locks with a weight of %d are in the cache", len(c.young.rows)+len(c.old.rows), c.young.weight+c.old.weight)
				}
			}
			for name, want := range map[string]bool{"often": true, fmt.Sprint(n - 1): true, fmt.Sprint(n - maxCached/2/weighs): true, "0": false} {
				if _, ok := c.get(name); ok != want {
					t.Errorf("%s is in the cache: %t", name, ok)
				}
			}
			if want := 1 + len(record.Leases) + len(record.Queue); weighs < want || metadataOf(record) > 0 && weighs < want+metadataOf(record)/cachedMetadata {
				t.Errorf("it weighs %d", weighs)
			}
		})
	}
}

func metadataOf(r lock.Record) (n int) {
	for _, l := range r.Leases {
		n += len(l.Metadata)
	}
	for _, w := range r.Queue {
		n += len(w.Lease.Metadata)
	}
	return n
}

// TestTheCacheIsOfOneEpochAndServer: locks, tokens and clock of another one are dropped.
func TestTheCacheIsOfOneEpochAndServer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	e := epoch.Epoch{Number: 3, Started: now}
	for name, c := range map[string]struct {
		next  epoch.Epoch
		stays bool
	}{
		"the same":         {e, true},
		"its pause passed": {epoch.Epoch{Number: 3, Started: now, ClosedUntil: now}, true},
		"another epoch":    {epoch.Epoch{Number: 4, Started: now}, false},
		"another server":   {epoch.Epoch{Number: 3, Started: now.Add(time.Second)}, false},
	} {
		var of cache
		of.enter(e, reading{shown: now, after: now, before: now})
		of.put(rowOf("a", 1))
		clock := reading{shown: now.Add(time.Hour), after: now, before: now.Add(time.Second)}
		of.enter(c.next, clock)
		if _, ok := of.get("a"); ok != c.stays || (of.clock == clock) == c.stays || !of.epoch.ClosedUntil.Equal(c.next.ClosedUntil) {
			t.Errorf("%s: it has the lock: %t, clock %v", name, ok, of.clock)
		}
	}
}

// TestTheCacheDoesNotOutliveAConnection: behind another one the server may have lost its newest commits.
func TestTheCacheDoesNotOutliveAConnection(t *testing.T) {
	t.Parallel()
	var c cache
	for made, stays := range map[int64]bool{3: true, 4: false} {
		c.clearIfReconnected(3)
		c.put(rowOf("a", 1))
		c.clearIfReconnected(made)
		if _, ok := c.get("a"); ok != stays {
			t.Errorf("after %d connections it has the lock: %t", made, ok)
		}
		c.clear()
	}
}

func TestAReadingIsNeverAhead(t *testing.T) {
	t.Parallel()
	shown, here := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Now()
	r := reading{shown: shown, after: here, before: here.Add(time.Millisecond)}
	for name, c := range map[string]struct{ since, want time.Duration }{
		"before it was back":     {-time.Second, 0},
		"just then":              {time.Millisecond, 0},
		"later":                  {time.Second + time.Millisecond, time.Second},
		"in whole microseconds":  {time.Millisecond + 1999, time.Microsecond},
		"much later, to the dot": {time.Hour + time.Millisecond, time.Hour},
	} {
		got := r.at(here.Add(c.since))
		if !got.Equal(shown.Add(c.want)) {
			t.Errorf("%s: %v after it was read", name, got.Sub(shown))
		}
		if back := r.earliest(got); back.After(here.Add(max(c.since, 0))) || !back.Equal(here.Add(c.want)) {
			t.Errorf("%s: on this process's clock %v after it was read", name, back.Sub(here))
		}
	}
}

func TestTheNarrowerReadingIsTheBetter(t *testing.T) {
	t.Parallel()
	here := time.Now()
	read := func(at, width time.Duration) reading {
		return reading{after: here.Add(at - width), before: here.Add(at)}
	}
	old := read(0, time.Millisecond)
	for name, c := range map[string]struct {
		newer reading
		want  bool
	}{
		"narrower":                             {read(time.Second, time.Microsecond), true},
		"as wide":                              {read(0, time.Millisecond), true},
		"wider":                                {read(time.Millisecond, 2*time.Millisecond), false},
		"wider by what clocks may diverge":     {read(time.Second, 2*time.Millisecond), true},
		"wider by more than that":              {read(time.Second, 2*time.Millisecond+1), false},
		"wide, but there was none for an hour": {read(time.Hour, time.Second), true},
	} {
		if got := old.morePrecise(c.newer) == c.newer; got != c.want {
			t.Errorf("%s: taken is %t", name, got)
		}
	}
	if got := (reading{}).morePrecise(old); got != old {
		t.Error("none is better than one")
	}
}

// TestALateCommitFillsNoCacheOfAnotherEpoch: a commit may take so long that the cache has met another epoch or server.
func TestALateCommitFillsNoCacheOfAnotherEpoch(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old := epoch.Epoch{Number: 3, Started: now}
	for name, c := range map[string]struct {
		met  epoch.Epoch
		into bool
	}{
		"the same":       {old, true},
		"another epoch":  {epoch.Epoch{Number: 4, Started: now}, false},
		"another server": {epoch.Epoch{Number: 3, Started: now.Add(time.Second)}, false},
	} {
		w := &worker{shared: &shared{epochs: epoch.New(nil), publish: func([]*row.Outcome) {}}}
		w.cache.enter(c.met, reading{shown: now, after: now, before: now})
		a := &attempt{worker: w, epoch: old}
		change := &row.Change{Before: new(row.Row), After: lock.Record{Name: "a", Token: 7}, Written: true}
		done := row.Written{Clock: now, Batch: 8}
		u := &unit{names: []string{"a"}, changes: []*row.Change{change}}
		if _, _, err := a.swapped([]*unit{u}, done, reading{shown: now, after: now, before: now}, nil); err != nil {
			t.Fatal(err)
		}
		if _, ok := w.cache.get("a"); ok != c.into {
			t.Errorf("%s: the lock is cached: %t", name, ok)
		}
	}
}

// TestAnAcquireLingersInCompanyOnly: behind a waiter of its replica that it cannot overtake, so that a call here tells
// when that one is granted the lock; if that is soon, and if the replica has a share of the queue.
func TestAnAcquireLingersInCompanyOnly(t *testing.T) {
	t.Parallel()
	queue := func(others int, change func(*lock.Waiter)) (all []*lock.Waiter) {
		w := lock.Waiter{Replica: 1, Attachment: 1}
		change(&w)
		for range others {
			all = append(all, &lock.Waiter{Replica: 2, Attachment: 2})
		}
		return append(all, &w, &lock.Waiter{JoinedAt: w.JoinedAt.Add(time.Hour)})
	}
	joined := func(after time.Duration) func(*lock.Waiter) {
		return func(w *lock.Waiter) { w.JoinedAt = w.JoinedAt.Add(after) }
	}
	patient := lock.Traits{Lease: lock.LeaseID{9}, Wait: lingerWait}
	for name, c := range map[string]struct {
		queue           []*lock.Waiter
		queued, lingers bool
	}{
		"nobody waits":             {},
		"one of this replica":      {queue(0, joined(0)), true, true},
		"among a few":              {queue(lingerShare-2, joined(0)), true, true},
		"among many":               {queue(lingerShare-1, joined(0)), true, false},
		"soon after another":       {queue(1, joined(joinLinger)), true, true},
		"long after another":       {queue(1, joined(joinLinger+1)), true, false},
		"the next, whenever it is": {queue(0, joined(time.Hour)), true, true},
		"one of another":           {queue(0, func(w *lock.Waiter) { w.Replica = 2 }), true, false},
		"one whose client left":    {queue(0, func(w *lock.Waiter) { w.Attachment = 0 }), true, false},
		"one that was granted it":  {queue(0, func(w *lock.Waiter) { w.GrantedUnclaimed = true }), true, false},
		"one for a lock below":     {queue(0, func(w *lock.Waiter) { w.Lease.Mode = lock.IntentionShared }), true, false},
		"its own place":            {queue(0, func(w *lock.Waiter) { w.Lease.ID = patient.Lease }), true, false},
	} {
		var of cache
		of.put(&row.Row{Record: lock.Record{Name: "a", Queue: c.queue}})
		if queued, lingers := of.queued("a", 1, patient); queued != c.queued || lingers != c.lingers {
			t.Errorf("%s: %t, %t", name, queued, lingers)
		}
		if queued, lingers := of.queued("b", 1, patient); queued || lingers {
			t.Error("a lock that is not cached has a queue")
		}
		if _, lingers := of.queued("a", 1, lock.Traits{Lease: patient.Lease, Wait: lingerWait - 1}); lingers {
			t.Errorf("%s: an acquire lingers for much of its wait", name)
		}
		of.put(&row.Row{Record: lock.Record{Name: "a", Leases: []lock.Lease{{ID: patient.Lease}}, Queue: c.queue}})
		if _, lingers := of.queued("a", 1, patient); lingers {
			t.Errorf("%s: an acquire that is repeated by the holder lingers", name)
		}
	}
}
