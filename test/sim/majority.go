package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// majority locks by the votes of independent servers, as "Distributed Locks with Redis" describes the algorithm
// Redlock (redis.io, by Sanfilippo, 2015):
//
//  1. Read the clock.
//  2. Ask each server in turn, with a timeout that is short compared to the TTL, to set the key to a random value
//     with that TTL if the key is not set.
//  3. The lock is acquired if most servers did and some of the TTL is left after the time that it took to ask and an
//     allowance for clock drift.
//  4. Otherwise, and to release, ask each server to delete the key if it has that value. Then try again after a
//     random pause.
//
// The description asks operators to keep a crashed server away for the longest lease, or to write every change to
// disk before it is answered. Neither is done here. Its extension of leases is left out: work that is not done within
// the TTL stops.
type majority struct {
	*world
	votes [servers]voter
}

const (
	quorum   = servers/2 + 1
	oneVote  = 50 * time.Millisecond // the timeout of one vote
	forDrift = 2 * time.Millisecond  // plus a hundredth of the TTL
)

func newMajority(w *world) locker { return &majority{world: w} }

// A voter is one server. It has one key and its own clock.
type voter struct {
	value   string
	expires time.Time // on its clock
}

// set is SET key value NX PX ttl.
func (v *voter) set(now time.Time, value string, ttl time.Duration) bool {
	if v.value != "" && now.Before(v.expires) {
		return false
	}
	v.value, v.expires = value, now.Add(ttl)
	return true
}

// del deletes the key if it has that value.
func (v *voter) del(value string) bool {
	if v.value == value {
		v.value = ""
	}
	return true
}

// crash stops the server, which loses its memory.
func (m *majority) crash(server int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.votes[server], m.replicas[server] = voter{}, 0
}

func (m *majority) restart(server int) { m.startReplica(server) }

// ask performs op on the server, and reports whether the worker learns that it succeeded.
func (m *majority) ask(a *attempt, server int, op func(*voter, time.Time) bool) bool {
	a.awake(working)
	f := a.delivery("vote")
	done, err := ask(context.Background(), a.network, working, f, time.Now().Add(oneVote), func(context.Context) (bool, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.replicas[server] != 0 && op(&m.votes[server], m.clock(server)), nil
	})
	return err == nil && done
}

func (m *majority) do(a *attempt, work func(holdStatus) error) error {
	retries := newRNG(m.plan.Seed, "retries of "+a.holder)
	for over, try := a.now()+a.wait, 1; ; try++ {
		value := fmt.Sprintf("%s.%d", a.holder, try)
		h := m.acquire(a, value)
		if h.Err() == nil {
			err := work(h)
			m.release(a, value)
			return err
		}
		m.release(a, value)
		if a.dead() {
			return errDied
		}
		if a.sleep(working, randomDuration(retries, m.plan.TTL/5)); a.wait < guard.Forever && a.now() >= over {
			return newError(lock.ErrHeld, "Most servers have another value.")
		}
	}
}

// acquire asks for all votes and returns the lock if there are enough.
func (m *majority) acquire(a *attempt, value string) majorityLock {
	ttl := m.plan.TTL
	begun, votes := time.Now(), []int{}
	for server := range servers {
		if m.ask(a, server, func(v *voter, now time.Time) bool { return v.set(now, value, ttl) }) {
			votes = append(votes, server+1)
		}
	}
	if len(votes) < quorum {
		return majorityLock{}
	}
	a.note(a.name, "asks all servers and gets the votes of %v", votes)
	return majorityLock{begun.Add(ttl - ttl/100 - forDrift)}
}

func (m *majority) release(a *attempt, value string) {
	for server := range servers {
		m.ask(a, server, func(v *voter, _ time.Time) bool { return v.del(value) })
	}
}

// A majorityLock is the lock as one worker has it; the zero majorityLock is lost.
type majorityLock struct {
	until time.Time // on the worker's clock
}

// Token returns zero: the servers share nothing that could grow.
func (majorityLock) Token() lock.Token { return 0 }

// Err returns nil while some of the TTL is left.
func (b majorityLock) Err() error {
	if time.Now().Before(b.until) {
		return nil
	}
	return newError(lock.ErrLeaseLost, "Nothing is left of the TTL.")
}
