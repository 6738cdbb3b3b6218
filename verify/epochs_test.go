package verify_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// An epochHarness is a harness whose database is failed over to another clock.
type epochHarness struct {
	*harness
	off *atomic.Int64 // of the database's clock
}

func newEpochHarness(t *testing.T) *epochHarness {
	c := &epochHarness{newHarness(t), &atomic.Int64{}}
	c.memory = memlock.NewOn(func() time.Time { return time.Now().Add(time.Duration(c.off.Load())) })
	return c
}

// failOver begins an epoch on a clock that is ahead of the one before. Calls right before and after it show when.
func (c *epochHarness) failOver(ahead time.Duration) {
	c.t.Helper()
	name := time.Now().Format("15:04:05.000")
	c.acquire("before "+name, nil, lock.Acquire{Locks: lock.One("play:busy")})
	c.release("before " + name)
	time.Sleep(time.Millisecond)
	c.off.Add(int64(ahead))
	c.memory.BeginEpoch()
	c.acquire("after "+name, nil, lock.Acquire{Locks: lock.One("play:busy")})
	c.release("after " + name)
	c.read("play:busy")
	c.poll()
}

// waitAtAnother lets the holder wait at another replica. crash lets that die, and gives the client another one.
func (c *epochHarness) waitAtAnother(holder string, a lock.Acquire, do func(crash func())) {
	c.t.Helper()
	c.mu.Lock()
	c.as[holder] = c.rec.Client("another replica", c.memory.Replica(2))
	c.ids[holder] = lock.LeaseID{0xa, byte(len(c.ids))}
	c.mu.Unlock()
	a.Wait = 20 * time.Second
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.acquire(holder, lock.ErrUnknownOutcome, a)
	}()
	time.Sleep(250 * time.Millisecond)
	do(func() {
		c.memory.Crash(2)
		<-done
		c.mu.Lock()
		c.as[holder] = c.rec.Client(via, c.memory.Replica(1))
		c.mu.Unlock()
	})
}

// recordEpochs records two epochs. An hour is set back, and then two ahead.
func recordEpochs(t *testing.T) verify.History {
	t.Helper()
	var h verify.History
	synctest.Test(t, func(t *testing.T) {
		c := newEpochHarness(t)
		for i, ahead := range []time.Duration{-time.Hour, 2 * time.Hour} {
			c.crossEpoch([]string{"first", "second"}[i], ahead)
		}
		time.Sleep(2 * time.Minute)
		h = c.rec.History()
		var err error
		h.Events, err = verify.Collect(t.Context(), c.memory.Replica(1), "play:")
		c.want(nil, err)
	})
	return h
}

// crossEpoch lets all that can happen to locks happen across an epoch. The names begin with nth, and tell what
// happens.
func (c *epochHarness) crossEpoch(nth string, ahead time.Duration) {
	c.t.Helper()
	as := func(what string) string { return nth + " " + what }
	on := func(what string, ttl time.Duration) lock.Acquire {
		return lock.Acquire{Locks: lock.One("play:" + nth + ":" + what), TTL: ttl}
	}
	begun := time.Now()
	session := lock.SessionID{byte(len(nth))}
	_, err := c.client(as("session")).OpenSession(c.t.Context(), lock.OpenSession{ID: session, Holder: nth, TTL: 20 * time.Second})
	c.want(nil, err)
	inSession := on("session", 0)
	inSession.SessionID = session
	c.acquire(as("session"), nil, inSession)
	quiet := lock.SessionID{1, byte(len(nth))}
	_, err = c.client(as("quiet")).OpenSession(c.t.Context(), lock.OpenSession{ID: quiet, Holder: nth, TTL: 10 * time.Second})
	c.want(nil, err)
	inSession = on("quiet", 0)
	inSession.SessionID = quiet
	c.acquire(as("quiet"), nil, inSession)
	c.acquire(as("kept"), nil, on("kept", 20*time.Second))
	c.renew(as("kept"), nil)
	c.acquire(as("silent"), nil, on("silent", 20*time.Second))
	c.acquire(as("over"), nil, on("over", 20*time.Second))
	revoked := on("revoked", time.Minute)
	revoked.Grace = 20 * time.Second
	c.acquire(as("revoked"), nil, revoked)
	held := on("held", 24*time.Second)
	held.MaxHold = 40 * time.Second
	c.acquire(as("held"), nil, held)
	set := on("set", 20*time.Second)
	set.Locks = append(set.Locks, lock.Member{Name: set.Locks[0].Name + "-too", Mode: lock.Exclusive})
	c.acquire(as("set"), nil, set)
	c.acquire(as("done"), nil, on("done", time.Minute))
	c.want(nil, c.client(as("done")).Release(c.t.Context(), lock.Release{Locks: []string{c.grant(as("done")).Name}, LeaseID: c.id(as("done")),
		Closed: lock.Closing{For: 10 * time.Hour}}))
	frozen := on("frozen", time.Minute)
	_, err = c.client("the operator").Freeze(c.t.Context(), lock.FreezeRequest{Scope: lock.Scope(frozen.Locks[0].Name), Reason: "maintenance"})
	c.want(nil, err)
	c.acquire(as("queue"), nil, on("queue", 3*time.Minute))
	place := on("queue", time.Minute)
	place.Wait, place.KeepPlace = time.Second, true
	c.acquire(as("place"), lock.ErrHeld, place)
	long := on("claimed", 3*time.Minute)
	c.acquire(as("claimed before"), nil, long)
	c.waitWhile(as("claimed"), long, func() {
		time.Sleep(time.Until(begun.Add(7 * time.Second)))
		_, err := c.client(as("quiet")).RenewSession(c.t.Context(), lock.RenewSession{ID: quiet})
		c.want(nil, err)
		time.Sleep(time.Until(begun.Add(14 * time.Second)))
		c.revokeLease(as("revoked"), "leave the grace", false, nil)
		c.release(as("claimed before"))
	})
	long = on("unclaimed", 3*time.Minute)
	c.acquire(as("unclaimed before"), nil, long)
	c.waitAtAnother(as("unclaimed"), long, func(crash func()) {
		crash()
		c.release(as("unclaimed before"))
		c.failOver(ahead)
	})

	c.acquire(as("unclaimed"), nil, long) // in its place, again
	c.acquire(as("late"), lock.ErrHeld, on("kept", time.Minute))
	c.acquire(as("frozen"), lock.ErrFrozen, frozen)
	c.acquire(as("again"), lock.ErrAlreadyDone, withOnce(on("done", time.Minute)))
	c.read("play:" + nth + ":silent")
	c.read("play:" + nth + ":kept")
	c.verify(as("silent"))
	c.renew(as("over"), nil)
	time.Sleep(time.Until(begun.Add(25 * time.Second)))
	c.renew(as("kept"), nil)
	c.read("play:" + nth + ":kept")
	c.renew(as("held"), nil)
	c.renew(as("set"), nil, set.Names()...)
	c.acquire(as("too soon"), lock.ErrHeld, on("revoked", time.Minute))
	c.acquire(as("kept"), nil, on("kept", 20*time.Second))
	_, err = c.client(as("session")).RenewSession(c.t.Context(), lock.RenewSession{ID: session})
	c.want(nil, err)
	c.read("play:" + nth + ":session")
	c.waitWhile(as("next"), on("revoked", time.Minute), func() {})
	time.Sleep(time.Until(begun.Add(80 * time.Second)))
	for _, what := range []string{"claimed", "unclaimed", "next"} {
		c.release(as(what))
	}
	c.want(nil, c.client("the operator").Thaw(c.t.Context(), lock.ThawRequest{Scope: lock.Scope(frozen.Locks[0].Name)}))
	c.acquire(as("frozen"), nil, frozen)
	c.release(as("frozen"))
	c.release(as("queue"))
	c.poll()
}

func withOnce(a lock.Acquire) lock.Acquire {
	a.Once = true
	return a
}

// TestEpochsThatCarryOverWhatWasPromisedPass: each check has cases, and none finds anything, although the clocks of
// the epochs are hours apart.
func TestEpochsThatCarryOverWhatWasPromisedPass(t *testing.T) {
	t.Parallel()
	h := recordEpochs(t)
	r := h.Check(verify.CheckOptions{})
	if !r.OK() {
		t.Error(text(t, r))
	}
	i := slices.IndexFunc(r.Checks, func(c verify.Check) bool { return c.Name == byEpochs })
	if r.Checks[i].Examined < 10 {
		t.Errorf("%d cases of what an epoch carries over", r.Checks[i].Examined)
	}
}

// beginEpoch lets an epoch begin with that event.
func (s editable) beginEpoch(from lock.Event) {
	s.Events = slices.Clone(s.Events)
	for i := range s.Events {
		if s.Events[i].ID >= from.ID {
			s.Events[i].ID += lock.EventJump
		}
	}
}
