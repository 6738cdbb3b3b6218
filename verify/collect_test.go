package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func idText(id lock.LeaseID) string { return uuid.UUID(id).String() }

// usedLocks returns a service in which each of n locks was acquired and released.
func usedLocks(t *testing.T, n int) paddock.Service {
	t.Helper()
	s := memlock.New().Replica(1)
	for i := range n {
		name, id := fmt.Sprint("worn:", i), lock.LeaseID(uuid.New())
		if _, err := s.Acquire(t.Context(), lock.Acquire{Locks: lock.One(name), LeaseID: id, Holder: "a holder"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(t.Context(), lock.Release{Locks: []string{name}, LeaseID: id}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestAllEventsAreCollected(t *testing.T) {
	t.Parallel()
	s := usedLocks(t, 1200)
	for prefix, want := range map[string]int{"worn:": 2400, "worn:119": 22, "other:": 0} {
		events, err := verify.Collect(t.Context(), s, prefix)
		if err != nil || len(events) != want || events == nil {
			t.Errorf("%s: %d events were collected, want %d: %v", prefix, len(events), want, err)
		}
	}
}

// A busy service has new events whenever events are read.
type busy struct{ paddock.Service }

func (b busy) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	a := lock.Acquire{Locks: lock.One("worn:0"), LeaseID: lock.LeaseID(uuid.New()), Holder: "a holder"}
	if _, err := b.Acquire(ctx, a); err != nil {
		return paddock.Page[lock.Event]{}, err
	}
	if err := b.Release(ctx, lock.Release{Locks: []string{a.Locks[0].Name}, LeaseID: a.LeaseID}); err != nil {
		return paddock.Page[lock.Event]{}, err
	}
	return b.Service.Events(ctx, q)
}

// TestCollectEndsAlthoughThereAreEverMoreEvents, with all that there were when it began.
func TestCollectEndsAlthoughThereAreEverMoreEvents(t *testing.T) {
	t.Parallel()
	events, err := verify.Collect(t.Context(), busy{usedLocks(t, 1200)}, "worn:")
	if err != nil || len(events) < 2400 {
		t.Errorf("%d events were collected: %v", len(events), err)
	}
}

// A delayed service shows events only after some time, as behind an open transaction.
type delayed struct {
	paddock.Service
	from time.Time
}

func (l delayed) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	if time.Now().Before(l.from) {
		time.Sleep(q.Wait)
		return paddock.Page[lock.Event]{Next: "0"}, ctx.Err()
	}
	return l.Service.Events(ctx, q)
}

func TestCollectWaitsForDelayedEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := delayed{usedLocks(t, 3), time.Now().Add(time.Minute)}
		if events, err := verify.Collect(t.Context(), s, "worn:"); err != nil || len(events) != 6 {
			t.Errorf("%d events were collected: %v", len(events), err)
		}
		s.from = time.Now().Add(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := verify.Collect(ctx, s, "worn:"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("collecting ended with %v", err)
		}
	})
}

// A broken service fails, or reports a gap.
type broken struct {
	paddock.Service
	locks, events error
}

func (b broken) Locks(ctx context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	if b.locks != nil {
		return paddock.Page[lock.Lock]{}, b.locks
	}
	return b.Service.Locks(ctx, q)
}

func (b broken) Events(context.Context, paddock.EventQuery) (paddock.Page[lock.Event], error) {
	return paddock.Page[lock.Event]{Gap: true}, b.events
}

func TestCollectReportsErrors(t *testing.T) {
	t.Parallel()
	s := usedLocks(t, 1)
	for want, b := range map[string]broken{
		"list the locks":    {s, lock.ErrUnavailable, nil},
		"read events":       {s, nil, lock.ErrUnavailable},
		"collect sooner":    {s, nil, nil},
		"--event-retention": {s, nil, nil},
	} {
		if _, err := verify.Collect(t.Context(), b, "worn:"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want it to say %q", err, want)
		}
	}
}

func TestRecorderRecordsCallsAndFaults(t *testing.T) {
	t.Parallel()
	rec := verify.NewRecorder()
	s := rec.Client("here", memlock.New().Replica(1))
	if _, err := s.Acquire(t.Context(), lock.Acquire{Locks: lock.One("a"), Holder: "a holder"}); err != nil {
		t.Fatal(err)
	}
	rec.MarkFault("a fault")
	rec.MarkFault("another fault")
	_, missing := s.ReadFenced(t.Context(), "k")
	if !errors.Is(missing, lock.ErrNotFound) {
		t.Fatal(missing)
	}
	h := rec.History()
	first, second := h.Calls[0], h.Calls[1]
	if a := first.Request.(lock.Acquire); first.Verb != verify.Acquire || first.Via != "here" || first.Name != "a" ||
		a.LeaseID == (lock.LeaseID{}) || first.Response.(lock.Grant).ID != a.LeaseID {
		t.Errorf("recorded %+v", first)
	}
	if second.ID != 1 || second.Outcome() != verify.Refused || second.Response != nil ||
		!errors.Is(second.Err, lock.ErrNotFound) {
		t.Errorf("recorded %+v", second)
	}
	if f := h.Faults; len(f) != 2 || f[0].At <= first.Answered || f[0].At >= f[1].At || f[1].At >= second.Sent {
		t.Errorf("noted %+v", f)
	}
	if first.Sent >= first.Answered || first.Answered >= second.Sent || h.Start.IsZero() {
		t.Errorf("from %v to %v, then from %v", first.Sent, first.Answered, second.Sent)
	}
}
