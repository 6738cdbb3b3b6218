package workload

import (
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A turn is what a client sets out to do at once.
type turn int

const (
	hold turn = iota // a lease from its beginning to its end
	late             // something with a lease that is over
	look             // at a lock, and at the tokens there
	oust             // somebody from a lock
)

// An ending is how a client ends a lease.
type ending int

const (
	release ending = iota
	sleep          // until about when the lease ends, and then renew, and release
	desert         // without a word
)

// stays is when a client goes away that does not.
const stays time.Duration = -1

// A plan is what a client intends to do in one turn. It is drawn before the turn
// begins and does not depend on what happens.
type plan struct {
	turn   turn
	lock   int
	via    int           // the replica to begin with
	pick   int           // which of those that there are to choose from
	ask    lock.Acquire  // without name, lease_id and holder
	vanish time.Duration // after which the client is gone that acquires
	again  bool          // whether to acquire a second time
	steps  []step        // under the lease
	ending ending
	around time.Duration // the lease's end, when to wake up from the sleep
	rest   time.Duration // after the turn
}

// A step is one thing that a client does with a lease.
type step struct {
	verb    verify.Verb
	via     int
	key     int
	pause   time.Duration // before it
	vanish  time.Duration // after which nobody waits for its first answer
	again   bool          // whether to do it a second time
	careful bool          // a write: only if nobody has written since it was read
	pretend bool          // a write, a look at a token: with one that is not mine
	// proclaim is, of a renewal, with other metadata; of a careful write, with another version; of
	// a revocation, at once
	proclaim bool
}

// draw returns what the client of that number intends in that turn.
func (o Options) draw(client, number int) plan {
	d := dice{rand.New(rand.NewPCG(o.Seed, uint64(client)<<32|uint64(number)))}
	p := plan{
		turn: d.turn(), lock: d.IntN(o.Locks), via: d.IntN(len(o.Services)), pick: d.IntN(1 << 20),
		vanish: stays, again: d.one(10), around: d.between(-o.TTL/10, o.TTL/5), rest: d.between(time.Millisecond, 6*time.Millisecond),
	}
	p.ask = o.drawAcquire(d, familyOf(p.lock))
	if d.one(14) {
		p.vanish = d.between(0, max(p.ask.Wait, 4*time.Millisecond))
	}
	if o.Orderly {
		p.ask, p.vanish = orderly(p.ask), stays
	}
	if o.Fickle {
		p.ask, p.vanish = orderly(p.ask), stays
		if p.turn == oust {
			p.turn = look
		}
	}
	switch n := d.IntN(100); {
	case n < 5:
		p.ending = desert
	case n < 12:
		p.ending = sleep
	}
	for range 1 + d.IntN(6) {
		p.steps = append(p.steps, o.drawStep(d))
	}
	return p
}

// orderly returns a as one asks who waits until he is served.
func orderly(a lock.Acquire) lock.Acquire {
	if a.KeepPlace = false; a.Wait > 0 {
		a.Wait = lock.MaxWait
	}
	return a
}

func (o Options) drawAcquire(d dice, f family) lock.Acquire {
	a := lock.Acquire{Mode: lock.Exclusive, TTL: max(d.between(o.TTL/2, o.TTL*3/2), lock.MinTTL)}
	switch f {
	case rooms:
		if !d.one(3) {
			a.Mode = lock.Shared
		}
	case permits:
		a.Mode, a.Capacity = lock.Permit, capacity
	}
	switch n := d.IntN(10); {
	case n < 4:
		a.Wait = d.between(o.TTL/20, o.TTL/4)
	case n < 8:
		a.Wait = d.between(o.TTL/2, 3*o.TTL)
	}
	a.Wait, a.KeepPlace = min(a.Wait, lock.MaxWait), d.one(6)
	if d.one(4) && !o.NoGrace {
		a.Grace = min(d.between(0, o.TTL/2), lock.MaxGrace)
	}
	if d.one(12) {
		a.MaxHold = a.TTL + d.between(0, o.TTL)
	}
	return a
}

func (o Options) drawStep(d dice) step {
	s := step{
		verb: d.verb(), via: d.IntN(len(o.Services)), key: d.IntN(keysOfLock), vanish: stays,
		again: d.one(10), careful: d.one(2), pretend: d.one(5), proclaim: d.one(8),
	}
	if d.one(4) {
		s.pause = d.between(0, o.TTL/20)
	}
	if d.one(25) {
		s.vanish = d.between(0, 3*time.Millisecond)
	}
	return s
}

// dice are what intentions are drawn with.
type dice struct{ *rand.Rand }

// one is true once in n times.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

// between returns a time from least to most, in whole milliseconds, as they travel.
func (d dice) between(least, most time.Duration) time.Duration {
	return (least + time.Duration(d.Int64N(int64(most-least)+1))).Truncate(time.Millisecond)
}

func (d dice) turn() turn {
	switch n := d.IntN(100); {
	case n < 8:
		return late
	case n < 16:
		return look
	case n < 20:
		return oust
	}
	return hold
}

func (d dice) verb() verify.Verb {
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
	return verify.Look
}
