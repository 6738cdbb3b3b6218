package waiters

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const noLimit = 1000

// TestARefusalWhileGrantsArePausedIsADecision: it has the code of a database that does not answer, but nothing is to
// be given back.
func TestARefusalWhileGrantsArePausedIsADecision(t *testing.T) {
	t.Parallel()
	e := newEngine()
	e.paused = time.Now().Add(time.Hour)
	r := e.replica(t, pgtest.URL(t), noLimit)
	a := wants(t, "a", "late")
	a.Wait = time.Millisecond
	if out, err := r.Acquire(t.Context(), &a); !errors.Is(err, lock.ErrUnavailable) || out.Err == nil {
		t.Errorf("answered %v, want the decision", err)
	}
	r.cleanup.Wait()
	if leaves := e.leaves(); len(leaves) != 1 || leaves[0].Disconnected {
		t.Errorf("left by %+v", leaves)
	}
}

// TestACallThatEndsEarlyKeepsItsPlace: its client may return, unless the service has generated the lease_id.
func TestACallThatEndsEarlyKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause error
		keeps bool
	}{{context.Canceled, true}, {context.DeadlineExceeded, true}, {context.Canceled, false}} {
		t.Run(fmt.Sprintf("%v, lease_id known: %t", c.cause, c.keeps), func(t *testing.T) {
			t.Parallel()
			r := newEngine().replica(t, pgtest.URL(t), noLimit)
			r.hold(t, "a")
			ctx, end := context.WithCancelCause(t.Context())
			a := wants(t, "a", "gone")
			a.GeneratedID = !c.keeps
			call := r.waits(ctx, t, a)
			end(c.cause)
			if got := ended(t, call); !errors.Is(got.err, lock.ErrUnavailable) || !errors.Is(got.err, c.cause) {
				t.Errorf("answered %v", got.err)
			}
			r.cleanup.Wait()
			queue := r.engine.lock("a").Queue
			if c.keeps != (len(queue) == 1) {
				t.Errorf("%d places are left", len(queue))
			}
			if c.keeps && (queue[0].Attachment != 0 || queue[0].KeptUntil.Before(time.Now().Add(lock.MaxWait-lock.PlaceRetention))) {
				t.Errorf("the place is %+v, want it without a call and kept until the end of the wait", queue[0])
			}
		})
	}
}

// TestAGrantThatComesWhileTheClientLeavesIsGivenBack: the client leaves before its command is decided.
func TestAGrantThatComesWhileTheClientLeavesIsGivenBack(t *testing.T) {
	t.Parallel()
	e := newEngine()
	ctx, cut := context.WithCancel(t.Context())
	e.before = func(lock.Command) error { cut(); return nil }
	r := e.replica(t, pgtest.URL(t), noLimit)
	if _, err := r.Acquire(ctx, new(wants(t, "a", "gone"))); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("answered %v", err)
	}
	r.cleanup.Wait()
	if l := e.lock("a"); len(l.Leases)+len(l.Queue) != 0 {
		t.Errorf("left are %+v", l)
	}
}

// TestAGrantThatWasAnsweredIsNotTakenBack: the wait of a call ends just when a release promotes it. Its own Leave is
// answered with the grant, and the call is gone before the grant of the release is delivered.
func TestAGrantThatWasAnsweredIsNotTakenBack(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		t.Run(fmt.Sprint(answered), func(t *testing.T) {
			t.Parallel()
			r := newEngine().replica(t, pgtest.URL(t), noLimit)
			lease := r.hold(t, "a")
			a := wants(t, "a", "second")
			c, err := r.register(&a)
			if err != nil {
				t.Fatal(err)
			}
			r.decide(a, false)
			promotion := r.decide(lock.Release{Locks: []string{"a"}, LeaseID: lease.ID}, false)
			if answered {
				if out := r.decide(c.leave(false, false), false); out.Err != nil {
					t.Fatal(out.Err)
				}
			}
			r.unregister(c, answered)
			r.Notify([]*row.Outcome{promotion})
			r.cleanup.Wait()
			if held := len(r.engine.lock("a").Leases) == 1; held != answered {
				t.Errorf("a client knows of the lease: %t; the lock is held: %t", answered, held)
			}
		})
	}
}

// TestAClaimIsRepeatedWhenItsAnswerIsLost: the first one is lost after it was decided.
func TestAClaimIsRepeatedWhenItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	e := newEngine()
	claims := 0
	e.after = func(cmd lock.Command) error {
		if _, ok := cmd.(lock.Claim); ok {
			if claims++; claims == 1 {
				return database.UnknownOutcome(nil)
			}
		}
		return nil
	}
	url := pgtest.URL(t)
	here, there := e.replica(t, url, noLimit), e.replica(t, url, noLimit)
	lease := there.hold(t, "a")
	call := here.waits(t.Context(), t, wants(t, "a", "next"))
	there.release(t, lease)
	here.WakeAll()
	if got := ended(t, call); got.err != nil || got.out.Leases[0].Holder != "next" || claims != 2 {
		t.Errorf("%q got the lock after %d claims, %v", got.out.Leases[0].Holder, claims, got.err)
	}
	if leaves := e.leaves(); len(leaves) != 0 {
		t.Errorf("left by %+v", leaves)
	}
}

// TestALeaveIsRepeatedUntilItIsDecided: the answer to a join is lost, and then the database does not answer for a
// while.
func TestALeaveIsRepeatedUntilItIsDecided(t *testing.T) {
	t.Parallel()
	e := newEngine()
	var failures atomic.Int32
	e.before = func(cmd lock.Command) error {
		if _, ok := cmd.(lock.Leave); ok && failures.Add(1) <= 2 {
			return database.Unavailable(nil)
		}
		return nil
	}
	e.after = func(cmd lock.Command) error {
		if a, ok := cmd.(lock.Acquire); ok && a.Holder == "next" {
			return database.UnknownOutcome(nil)
		}
		return nil
	}
	r := e.replica(t, pgtest.URL(t), noLimit)
	r.hold(t, "a")
	if _, err := r.Acquire(t.Context(), new(wants(t, "a", "next"))); !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Fatalf("answered %v", err)
	}
	r.cleanup.Wait()
	queue := e.lock("a").Queue
	if n := len(e.leaves()); n != 3 || len(queue) != 1 || queue[0].Attachment != 0 {
		t.Errorf("%d attempts left %+v", n, queue)
	}
}

// TestAJoinThatWasNotDoneLeavesNothing to be given back.
func TestAJoinThatWasNotDoneLeavesNothing(t *testing.T) {
	t.Parallel()
	e := newEngine()
	e.before = func(lock.Command) error { return database.Unavailable(nil) }
	r := e.replica(t, pgtest.URL(t), noLimit)
	if _, err := r.Acquire(t.Context(), new(wants(t, "a", "next"))); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("answered %v", err)
	}
	r.cleanup.Wait()
	if leaves := e.leaves(); len(leaves) != 0 {
		t.Errorf("left by %+v", leaves)
	}
}

// TestTheLimitCountsCallsOfAllReplicas: beyond it no call may join a queue, but a free lock is granted.
func TestTheLimitCountsCallsOfAllReplicas(t *testing.T) {
	t.Parallel()
	r := newEngine().replica(t, pgtest.URL(t), 3)
	r.hold(t, "a")
	r.remote.Store(1)
	r.waits(t.Context(), t, wants(t, "a", "second"))
	r.waits(t.Context(), t, wants(t, "a", "third"))
	if _, err := r.Acquire(t.Context(), new(wants(t, "a", "too many"))); !errors.Is(err, lock.ErrTooManyWaiters) {
		t.Errorf("answered %v", err)
	}
	r.hold(t, "free")
	r.Drain()
	r.Wait()
}

// TestDrainKeepsPlacesWhileGrantsArePaused, too, although the wait is not refused because of a holder.
func TestDrainKeepsPlacesWhileGrantsArePaused(t *testing.T) {
	t.Parallel()
	e := newEngine()
	e.paused = time.Now().Add(time.Hour)
	r := e.replica(t, pgtest.URL(t), noLimit)
	call := r.waits(t.Context(), t, wants(t, "a", "first"))
	r.Drain()
	if got := ended(t, call); !errors.Is(got.err, database.ErrStopping) {
		t.Errorf("answered %v", got.err)
	}
	if n := len(e.lock("a").Queue); n != 1 {
		t.Errorf("%d places are kept", n)
	}
}

// TestCallsThatEndedWithAGrantAreRemembered: no more than maxHandled of them.
func TestCallsThatEndedWithAGrantAreRemembered(t *testing.T) {
	t.Parallel()
	r := New(nil, 1, noLimit, nil)
	var all []lock.Attachment
	for range maxHandled + 1 {
		c, err := r.register(&lock.Acquire{})
		if err != nil {
			t.Fatal(err)
		}
		r.unregister(c, true)
		all = append(all, c.attachment)
	}
	for i, want := range map[int]bool{0: false, 1: true, maxHandled: true} {
		if got := r.deliver(all[i], new(row.Outcome)); got != want {
			t.Errorf("call %d is remembered: %t", i, got)
		}
	}
	if len(r.handled) != maxHandled {
		t.Errorf("%d are remembered", len(r.handled))
	}
}
