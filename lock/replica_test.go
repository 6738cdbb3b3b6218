package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// unclaimedGrant returns a model in which replica 1 has granted the lock to 2, which waits on replica 2, ahead of 3
// on replica 1. The grant is unclaimed.
func unclaimedGrant(t *testing.T) (*model, lock.Acquire) {
	t.Helper()
	w := newModel(t)
	w.must(acquire(1))
	call := w.on(2).enqueue(2, func(a *lock.Acquire) { a.Grace = 2 * time.Second })
	w.on(1).enqueue(3)
	w.advance(time.Second)
	w.must(release(1))
	w.expect("2? | 2 3")
	return w, call
}

// grantToReplica2 is how replica 1 grants the lock to 2, which waits on replica 2, ahead of 3 on replica 1.
const grantToReplica2 = `
	acquire 1; on 2; wait 2 grace=2s; on 1; wait 3; after 1s
	release 1 -> held=2 ends=claim due=claim [2? | 2 3]
	`

func TestRemoteGrant(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"is unclaimed, and its TTL starts with the claim": grantToReplica2 + `
			after claim-1ms; on 2
			claim 2 -> token=2 begun=0s expires=10s [2 | 3]
			claim 2 -> nothing`,
		"blocks all others": grantToReplica2 + `acquire 9 -> !lock_held retry=claim ahead=1`,
		"is claimed by a repeated call on any replica": grantToReplica2 + `
			call 2 -> replayed=false
			on 2; claim 2/1 -> !lock_held
			cut 2/1 -> !lock_held
			on 1; sweep -> [2 | 3]
			cut 2 -> [3 | (2)]`,
		"is claimed by a renewal": grantToReplica2 + `
			after 1s; renew 2 -> begun=0s expires=10s [2 | 3]
			on 2; cut 2 -> !lock_held; on 1; sweep -> [2 | 3]`,
		"is withdrawn when the client disconnects, and its place is kept": grantToReplica2 + `
			on 2; cut 2 -> withdrawn granted [3? | (2) 3]`,
		"is withdrawn by any replica": grantToReplica2 + `cut 2 -> [3 | (2)]`,
		"can be released":             grantToReplica2 + `release 2 -> [3 |]; on 2; claim 2 -> !lease_lost`,
		"can be revoked, and has no grace then": grantToReplica2 + `
			revoke 2 -> revoked granted [3 |]
			on 2; claim 2 -> !lease_lost(maintenance); leave 2 -> !lease_lost(maintenance)`,
		"is withdrawn if it is not claimed in time, and the next waiter is granted the lock at once": grantToReplica2 + `
			dead 2; after claim-1ns
			sweep -> nothing due=1ns; after 1ns
			sweep -> withdrawn(grant not claimed in time) granted wakes=3 [3 | (2)]`,
		"is not granted again while the replica is dead": grantToReplica2 + `
			dead 2; after claim
			release 3 -> [| (2)]
			acquire 4; after 40s
			sweep -> [|]
			sweep -> nothing due=never`,
		"leaves its place when it is withdrawn, until its retention is over": grantToReplica2 + `
			dead 2; after claim
			sweep -> [3 | (2)]
			wait 4; alive 2; on 2
			renew 3 -> [3 | 2 4]
			on 1; release 3 -> [2? | 2 4]
			on 2; claim 2 -> [2 | 4]`,
		"is granted again if its replica is alive": grantToReplica2 + `
			after claim
			sweep -> withdrawn granted@2#3 [2? | 2 3]
			on 2; claim 2 -> token=3`,
		"does not affect other shared leases when it is withdrawn": `
			acquire 1; on 2; wait 2 shared; dead 2; on 1; wait 3 shared
			release 1 -> [2? 3 | 2]; after claim
			sweep -> [3 | (2)]
			acquire 4 shared -> token=2 slot=1`,
	})
}

func TestDeadReplica(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"has its waiters skipped by others, but not by itself": `
			acquire 1; on 2; wait 2; on 1; wait 3; dead 2; after heartbeat-1ns
			sweep -> [1 | 2 3]; after 1ns
			sweep -> [1 | (2) 3]
			on 2; release 1 -> [2 | 3]
			claim 2`,
		"is found dead in time by a replica with a waiter behind": `
			acquire 1 shared ttl=1m; on 2; wait 2; dead 2; after 1s; on 1
			sweep -> due=19s
			wait 3 shared -> due=heartbeat-1s; after heartbeat-1s
			sweep -> granted [1 3 | (2)]`,
		"keeps the places of its waiters until their waits and the retention are over": `
			acquire 1 ttl=1h; on 2; wait 2; dead 2; on 1; after 20s+retention-1ns
			sweep -> [1 | (2)]; after 1ns
			sweep -> [1 |]`,
	})
}
