package workload

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A turnKind is what a client does in one turn.
type turnKind int

const (
	useLease turnKind = iota // acquire, use and end a lease
	useEnded                 // use an ended lease
	readLock                 // read a lock and verify its token
	revoke                   // revoke a lease
)

// A leaseEnd is how a client ends a lease.
type leaseEnd int

const (
	release leaseEnd = iota
	sleep            // sleep until about the end of the lease, then renew and release
	abandon          // leave the lease to expire
)

// never, as the time of a cancellation, means that the call is not cancelled.
const never time.Duration = -1

// maxSet is the number of locks of the largest sets.
const maxSet = 4

// A plan is what a client intends to do in one turn. It is drawn before the turn begins and does not
// depend on what happens.
type plan struct {
	kind        turnKind
	lock        int
	via         int           // index of the first replica to use
	pick        int           // random number to choose among what exists then
	acquire     lock.Acquire  // without the name of its lock, LeaseID and Holder
	others      []otherLock   // further locks that are acquired together with it, all or none
	closed      lock.Closing  // how the release at the end closes the lock
	session     bool          // the lease is one of a session of its own, which has the TTL and the grace
	cancelAfter time.Duration // when the acquire is cancelled, or never
	repeat      bool          // send the acquire and the release twice
	steps       []step        // while the lease is held
	end         leaseEnd
	wakeOffset  time.Duration // relative to the end of the lease, when to stop sleeping
	rest        time.Duration // pause after the turn
	opposite    bool          // acquire two locks one after the other instead, see useOpposite
	hold        time.Duration // from the first of these acquires to the second
	patience    time.Duration // how long each of them waits
}

// An otherLock is a further lock of a set.
type otherLock struct {
	lock int
	as   lock.Member // without a name
}

// A step is one call that a client makes with a lease.
type step struct {
	verb        verify.Verb
	via         int
	key         int
	pause       time.Duration // before the call
	cancelAfter time.Duration // when the first attempt is cancelled, or never
	repeat      bool          // make the call twice
	conditional bool          // a write with IfVersion; a verification or revocation with a slot
	// wrongToken is a write or verification with another token, a renewal with another TTL, or a
	// revocation with AcquiredAt.
	wrongToken bool
	// variant is a renewal with other metadata, a conditional write with a wrong version, or a
	// revocation that skips the grace.
	variant   bool
	operation bool // a write with an OperationID, which other clients use in the same turns
	member    int  // random number to choose a lock of the set
	part      bool // a renewal of one lease of a set without the others, which is refused
}

// draw returns the plan of a client for a turn.
func (o Options) draw(client, number int) plan {
	d := rng{rand.New(rand.NewPCG(o.Seed, uint64(client)<<32|uint64(number)))}
	p := plan{
		kind: d.turnKind(), lock: o.drawLock(d), via: d.IntN(len(o.Services)), pick: d.IntN(1 << 20),
		cancelAfter: never, repeat: d.oneIn(10), wakeOffset: d.between(-o.TTL/10, o.TTL/5),
		rest: d.between(time.Millisecond, 6*time.Millisecond),
	}
	p.acquire = o.drawAcquire(d, o.kindOf(p.lock))
	p.session = d.oneIn(6)
	switch {
	case o.kindOf(p.lock) == permitsByRule:
		p.acquire.TTL, p.acquire.MaxHold, p.session = 0, 0, false
	case o.kindOf(p.lock) == doneOnce:
		p.acquire.Once, p.session, p.closed = d.oneIn(2), false, d.closing(o.TTL)
	case o.Hold && d.oneIn(6):
		p.acquire.Stays, p.session = true, false
	}
	if d.oneIn(14) {
		p.cancelAfter = d.between(0, max(p.acquire.Wait, 4*time.Millisecond))
	}
	if o.NeverCancel {
		p.acquire, p.cancelAfter = neverCancel(p.acquire), never
	}
	if o.AbandonLostWaits {
		p.acquire, p.cancelAfter = neverCancel(p.acquire), never
	}
	if p.kind == revoke && (o.AbandonLostWaits || o.NoRevoke) {
		p.kind = readLock
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
	if d.oneIn(5) && p.lock < o.pool() { // a rule bounds the TTL, and work that is done once has one lock
		p.others = o.drawOthers(d, p.lock)
	}
	p.opposite = d.oneIn(o.Opposite)
	p.hold, p.patience = min(d.between(o.TTL/10, o.TTL/2), maxOppositeHold), d.between(minPatience, maxPatience)
	if o.NeverCancel || o.AbandonLostWaits || o.kindOf(p.lock) == permitsByRule { // such a plan has no TTL
		p.opposite = false
	}
	return p
}

// drawLock returns the number of a lock: of those in the tree once in five times, of the pool once in ten times, of the one that
// releases close once in twenty times.
func (o Options) drawLock(d rng) int {
	if o.Policy && d.oneIn(10) {
		return o.pool()
	}
	if !o.NeverCancel && !o.AbandonLostWaits && d.oneIn(20) { // such clients would wait until the lock opens
		return o.once()
	}
	if o.Tree && d.oneIn(5) {
		return o.Locks + d.IntN(len(treePaths))
	}
	return d.IntN(o.Locks)
}

// kindOf returns what the lock with that number is used for.
func (o Options) kindOf(number int) lockKind {
	switch {
	case number == o.pool():
		return permitsByRule
	case number == o.once():
		return doneOnce
	case number >= o.Locks:
		return readersAndWriters
	}
	return kindOf(number)
}

// drawOthers returns one to three other locks than the first, if there are so many, outside of the tree.
func (o Options) drawOthers(d rng, first int) (others []otherLock) {
	numbers := d.Perm(o.Locks)
	numbers = slices.DeleteFunc(numbers, func(n int) bool { return n == first })
	for _, n := range numbers[:min(1+d.IntN(maxSet-1), len(numbers))] {
		others = append(others, otherLock{n, d.member(o.kindOf(n))})
	}
	return others
}

// neverCancel returns a as a client sends it that waits until it is granted the lock.
func neverCancel(a lock.Acquire) lock.Acquire {
	if a.KeepPlace = false; a.Wait > 0 {
		a.Wait = lock.MaxWait
	}
	return a
}

func (o Options) drawAcquire(d rng, f lockKind) lock.Acquire {
	a := lock.Acquire{TTL: max(d.between(o.TTL/2, o.TTL*3/2), lock.MinTTL)}
	a.Locks = []lock.Member{d.member(f)}
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
		member: d.IntN(1 << 20), part: d.oneIn(8), operation: d.oneIn(3),
	}
	if d.oneIn(4) {
		s.pause = d.between(0, o.TTL/20)
	}
	if d.oneIn(25) {
		s.cancelAfter = d.between(0, 3*time.Millisecond)
	}
	return s
}

// An rng draws plans.
type rng struct{ *rand.Rand }

// oneIn is true once in n times.
func (d rng) oneIn(n int) bool { return d.IntN(n) == 0 }

// between returns a time from least to most in whole milliseconds, the precision of the API.
func (d rng) between(least, most time.Duration) time.Duration {
	return (least + time.Duration(d.Int64N(int64(most-least)+1))).Truncate(time.Millisecond)
}

// closing returns how a release closes its lock: for about a TTL, or until the end of the minute.
func (d rng) closing(ttl time.Duration) lock.Closing {
	if d.oneIn(3) {
		return lock.Closing{Period: lock.Minute}
	}
	return lock.Closing{For: d.between(ttl/4, 2*ttl)}
}

// member returns what is acquired of a lock of the kind, without a name.
func (d rng) member(f lockKind) lock.Member {
	switch {
	case f == permitsByRule:
		return lock.Member{Mode: lock.Permit, Permits: d.IntN(leastCapacity + 1)}
	case f == permitsOnly:
		return lock.Member{Mode: lock.Permit, Capacity: capacity, Permits: d.IntN(capacity + 1)}
	case f == readersAndWriters && !d.oneIn(3):
		return lock.Member{Mode: lock.Shared}
	}
	return lock.Member{Mode: lock.Exclusive}
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
