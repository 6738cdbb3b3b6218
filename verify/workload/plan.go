package workload

import (
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A turnKind is what a client sets out to do at once.
type turnKind int

const (
	useLease turnKind = iota // a lease from its beginning to its end
	useEnded                 // something with a lease that is over
	readLock                 // at a lock, and at the tokens there
	revoke                   // somebody from a lock
)

// An leaseEnd is how a client ends a lease.
type leaseEnd int

const (
	release leaseEnd = iota
	sleep            // until about when the lease ends, and then renew, and release
	abandon          // without a word
)

// never is when a client goes away that does not.
const never time.Duration = -1

// A plan is what a client intends to do in one turn. It is drawn before the turn
// begins and does not depend on what happens.
type plan struct {
	kind        turnKind
	lock        int
	via         int           // the replica to begin with
	pick        int           // which of those that there are to choose from
	acquire     lock.Acquire  // without name, lease_id and holder
	cancelAfter time.Duration // after which the client is gone that acquires
	repeat      bool          // whether to acquire a second time
	steps       []step        // under the lease
	end         leaseEnd
	wakeOffset  time.Duration // the lease's end, when to wake up from the sleep
	rest        time.Duration // after the turn
}

// A step is one thing that a client does with a lease.
type step struct {
	verb        verify.Verb
	via         int
	key         int
	pause       time.Duration // before it
	cancelAfter time.Duration // after which nobody waits for its first answer
	repeat      bool          // whether to do it a second time
	conditional bool          // a write: only if nobody has written since it was read
	wrongToken  bool          // a write, a look at a token: with one that is not mine
	// variant is, of a renewal, with other metadata; of a careful write, with another version; of
	// a revocation, at once
	variant bool
}

// draw returns what the client of that number intends in that turn.
func (o Options) draw(client, number int) plan {
	d := rng{rand.New(rand.NewPCG(o.Seed, uint64(client)<<32|uint64(number)))}
	p := plan{
		kind: d.turnKind(), lock: d.IntN(o.Locks), via: d.IntN(len(o.Services)), pick: d.IntN(1 << 20),
		cancelAfter: never, repeat: d.oneIn(10), wakeOffset: d.between(-o.TTL/10, o.TTL/5), rest: d.between(time.Millisecond, 6*time.Millisecond),
	}
	p.acquire = o.drawAcquire(d, kindOf(p.lock))
	if d.oneIn(14) {
		p.cancelAfter = d.between(0, max(p.acquire.Wait, 4*time.Millisecond))
	}
	if o.NeverCancel {
		p.acquire, p.cancelAfter = neverCancel(p.acquire), never
	}
	if o.AbandonLostWaits {
		p.acquire, p.cancelAfter = neverCancel(p.acquire), never
		if p.kind == revoke {
			p.kind = readLock
		}
	}
	switch n := d.IntN(100); {
	case n < 5:
		p.end = abandon
	case n < 12:
		p.end = sleep
	}
	for range 1 + d.IntN(6) {
		p.steps = append(p.steps, o.drawStep(d))
	}
	return p
}

// neverCancel returns a as one asks who waits until he is served.
func neverCancel(a lock.Acquire) lock.Acquire {
	if a.KeepPlace = false; a.Wait > 0 {
		a.Wait = lock.MaxWait
	}
	return a
}

func (o Options) drawAcquire(d rng, f lockKind) lock.Acquire {
	a := lock.Acquire{Mode: lock.Exclusive, TTL: max(d.between(o.TTL/2, o.TTL*3/2), lock.MinTTL)}
	switch f {
	case readersAndWriters:
		if !d.oneIn(3) {
			a.Mode = lock.Shared
		}
	case permitsOnly:
		a.Mode, a.Capacity = lock.Permit, capacity
	}
	switch n := d.IntN(10); {
	case n < 4:
		a.Wait = d.between(o.TTL/20, o.TTL/4)
	case n < 8:
		a.Wait = d.between(o.TTL/2, 3*o.TTL)
	}
	a.Wait, a.KeepPlace = min(a.Wait, lock.MaxWait), d.oneIn(6)
	if d.oneIn(4) && !o.NoGrace {
		a.Grace = min(d.between(0, o.TTL/2), lock.MaxGrace)
	}
	if d.oneIn(12) {
		a.MaxHold = a.TTL + d.between(0, o.TTL)
	}
	return a
}

func (o Options) drawStep(d rng) step {
	s := step{
		verb: d.verb(), via: d.IntN(len(o.Services)), key: d.IntN(keysOfLock), cancelAfter: never,
		repeat: d.oneIn(10), conditional: d.oneIn(2), wrongToken: d.oneIn(5), variant: d.oneIn(8),
	}
	if d.oneIn(4) {
		s.pause = d.between(0, o.TTL/20)
	}
	if d.oneIn(25) {
		s.cancelAfter = d.between(0, 3*time.Millisecond)
	}
	return s
}

// rng are what intentions are drawn with.
type rng struct{ *rand.Rand }

// oneIn is true once in n times.
func (d rng) oneIn(n int) bool { return d.IntN(n) == 0 }

// between returns a time from least to most, in whole milliseconds, as they travel.
func (d rng) between(least, most time.Duration) time.Duration {
	return (least + time.Duration(d.Int64N(int64(most-least)+1))).Truncate(time.Millisecond)
}

func (d rng) turnKind() turnKind {
	switch n := d.IntN(100); {
	case n < 8:
		return useEnded
	case n < 16:
		return readLock
	case n < 20:
		return revoke
	}
	return useLease
}

func (d rng) verb() verify.Verb {
	switch n := d.IntN(10); {
	case n < 4:
		return verify.Renew
	case n < 7:
		return verify.WriteFenced
	case n < 8:
		return verify.VerifyToken
	case n < 9:
		return verify.ReadFenced
	}
	return verify.ReadLock
}
