package lock_test

import (
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// heldWithQueue returns a model in which 1 holds the lock and 2, 3, … up to last wait.
func heldWithQueue(t *testing.T, last byte) (*model, map[byte]lock.Acquire) {
	t.Helper()
	w := newModel(t)
	w.must(acquire(1))
	calls := map[byte]lock.Acquire{}
	for n := byte(2); n <= last; n++ {
		calls[n] = w.enqueue(n)
	}
	return w, calls
}

func kinds(d lock.Decision) string {
	s := ""
	for _, e := range d.Events {
		s += e.Kind.String() + " "
	}
	return s
}

func TestQueueIsFIFO(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"a waiting request is queued, with an event that has its place": `acquire 1; wait 2 -> queued@2#0 [1 | 2]`,
		"a release promotes the next waiter in the same decision and notifies it": `
			acquire 1; wait 2; wait 3
			release 1 -> released granted@2#2 wakes=2 [2 | 3]`,
		"a revocation and an expiry also promote": `
			acquire 1; wait 2; wait 3; wait 4
			revoke 1 -> revoked granted [2 | 3 4]; after 10s
			sweep -> expired granted [3 | 4]
			release 3 -> [4 |]`,
		"the TTL starts at the grant, not at the call": `acquire 1; wait 2; after 4s; release 1 -> [2 |] held=2 ends=10s`,
		"a free lock is granted without waiting":       `call 1 -> granted#1`,
		"a non-waiting request is refused with the number of waiters": `
			acquire 1; wait 2; wait 3; wait 4; after 4s
			acquire 9 -> !lock_held ahead=3 retry=6s kept=0s [1 | 2 3 4]`,
		"a non-waiting request at the end of a lease does not jump the queue": `
			acquire 1; wait 2; after 10s
			acquire 9 -> !lock_held expired granted wakes=2 [2 |]`,
		"a compatible non-waiting request does not pass a waiter": `
			acquire 1 shared; wait 2
			acquire 9 shared -> !lock_held
			wait 3 shared -> [1 | 2 3]`,
	})
}

func TestLeavingTheQueue(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"a release with a waiter's lease_id removes the waiter": `
			acquire 1; wait 2; wait 3
			release 2 -> dequeued@2(place released)
			release 2 -> nothing
			renew 2 -> !lease_lost [1 | 3]
			claim 2 -> !lock_held
			release 1 -> [3 |]`,
		"a release of a waiter unblocks those behind": `
			acquire 1 shared; wait 2; wait 3 shared; wait 4 shared
			release 2 -> dequeued granted granted wakes=3,4 [1 3 4 |]`,
		"a client may join again at the end": `acquire 1; wait 2; wait 3; release 2; wait 2 -> [1 | 3 2]`,
		"a lease granted and released in the same decision is not notified": `
			acquire 1; wait 2; wait 3; after 10s
			release 2 -> expired granted released granted wakes=3 [3 |]`,
	})
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"the waiter leaves the queue and unblocks those behind": `
			acquire 1 shared; wait 2; wait 3 shared
			leave 2 -> !lock_held dequeued(wait ended) granted [1 3 |]
			wait 2`,
		"the call receives a grant that crossed its end": `
			acquire 1; wait 2; release 1
			leave 2 -> nothing token=2 replayed=false`,
		"the call receives a lock that becomes free in the same decision": `
			acquire 1; wait 2 for=10s; after 10s
			leave 2 -> expired granted token=2 wakes=`,
		"the call is refused if the lease has been revoked meanwhile": `
			acquire 1; wait 2; release 1; revoke 2
			leave 2 -> !lease_lost(maintenance) ended=revoked
			claim 2 -> !lease_lost(maintenance) ended=revoked`,
		"a waiter whose wait has ended is skipped before it leaves": `
			acquire 1 shared; wait 2 for=1s; wait 3 shared; after 1s
			sweep -> granted [1 3 | (2)]
			leave 2 -> !lock_held [1 3 |]`,
	})
}

func TestDisconnectWithAGeneratedLeaseID(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"removes the waiter": `acquire 1; wait 2; wait 3; drop 2 -> dequeued(client disconnected) [1 | 3]`,
		"withdraws a grant that crossed it, and grants the lock to the next waiter": `
			acquire 1; wait 2; wait 3; release 1
			drop 2 -> withdrawn@0#2(client disconnected) granted#3 wakes=3 [3 |]`,
		"frees the lock if no waiter is next": `acquire 1; wait 2; release 1; drop 2 -> [|] last=withdrawn state=free`,
		"withdraws a grant of the same decision without a notification": `
			acquire 1; wait 2; after 10s
			drop 2 -> expired granted withdrawn wakes= [|]`,
		"allows another call with the same lease_id": `
			acquire 1; wait 2; wait 3; release 1; drop 2; wait 2
			release 3 -> [2 |] held=4 ends=10s`,
		"withdraws a grant that it did not wait for": `call 1; drop 1 -> withdrawn [|]`,
		"does not withdraw a lease that its holder has renewed": `
			acquire 1; wait 2; release 1
			renew 2
			drop 2 -> !lock_held nothing [2 |]
			renew 2`,
	})
}

func TestMaxWaiters(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"limits those who wait, also to keep a place": `
			acquire 1; wait 2 max=2; wait 3 max=2
			wait 4 max=2 -> !too_many_waiters nothing ahead=2 retry=10s
			acquire 4 keep max=2 -> !too_many_waiters nothing
			wait 3 max=2
			acquire 4 max=2 -> !lock_held
			release 1
			wait 4 max=2 -> [2 | 3 4]`,
		"counts the places of a dead replica for their retention only": `
			acquire 1 ttl=1h
			on 2; wait 2 for=maxwait max=2; wait 3 for=maxwait max=2; dead 2
			on 1; after heartbeat+retention-1ns
			wait 4 for=maxwait max=2 -> !too_many_waiters; after 1ns
			wait 4 for=maxwait max=2; wait 5 for=maxwait max=2 -> [1 | (2) (3) 4 5]
			wait 6 for=maxwait max=2 -> !too_many_waiters ahead=2
			wait 2 for=maxwait max=2 -> [1 | 2 (3) 4 5]
			wait 6 for=maxwait max=2 -> !too_many_waiters
			release 1 -> [2 | (3) 4 5]`,
		"counts the place of a disconnected waiter for its retention only": `
			acquire 1 ttl=1h; wait 2; cut 2; after retention-1ns
			wait 3 max=1 -> !too_many_waiters; after 1ns
			wait 3 max=1; wait 2 -> [1 | 2 3]`,
	})
}
