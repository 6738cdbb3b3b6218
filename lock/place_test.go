package lock_test

import "testing"

func TestPlaceBelongsToTheLeaseID(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"a later call with the lease_id takes over the place": `
			acquire 1; wait 2; wait 3
			on 2; wait 2 -> quiet [1 | 2 3]
			on 1; claim 2/1 -> !lock_held
			leave 2/1 -> !lock_held
			cut 2/1 -> !lock_held [1 | 2 3]
			release 1
			on 2; claim 2 -> token=2`,
		"the later call waits for its own time": `
			acquire 1 ttl=1h; wait 2; after 5s
			wait 2 for=30s -> quiet joined=-5s; after 30s-1ns
			sweep -> [1 | 2]; after 1ns
			sweep -> [1 | (2)]`,
		"a call with another holder, mode or capacity is refused": `
			acquire 1; wait 2 permit=3
			wait 2 shared -> !lease_id_in_use
			wait 2 permit=2 -> !lease_id_in_use
			wait 2 permit=3 holder=another -> !lease_id_in_use [1 | 2]`,
		"a non-waiting call gives up the place": `
			acquire 1; wait 2; wait 3
			acquire 2 -> !lock_held dequeued [1 | 3]
			claim 2 -> !lock_held`,
		"a call at the moment of the grant receives the lease, and can withdraw it": `
			acquire 1; wait 2; after 10s
			call 2 -> expired granted wakes= replayed=false
			cut 2/1 -> !lock_held [2 |]
			cut 2 -> [| (2)]`,
		"a delivered lease is found by any call, and no earlier call can withdraw it": `
			acquire 1; wait 2; release 1
			on 2; call 2 -> replayed=true token=2
			on 1; cut 2/1 -> !lock_held [2 |]
			on 2; cut 2 -> !lock_held [2 |]`,
	})
}

func TestPlaceOutlivesTheConnection(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"until the wait would have ended": `
			acquire 1 ttl=1h; wait 2; wait 3; after 1s
			cut 2 -> [1 | (2) 3]; after 19s-1ns
			sweep -> nothing due=1ns
			wait 2 -> [1 | 2 3]`,
		"for the retention if less is left of the wait": `
			acquire 1 ttl=1h; wait 2; after 19s
			cut 2; after retention-1ns
			sweep -> nothing [1 | (2)]; after 1ns
			sweep -> dequeued(its client did not come back in time) [1 |]`,
		"over any number of cuts": `
			acquire 1 ttl=1h; wait 2; wait 3; after 15s
			cut 2; after 100ms; wait 2; after 15s
			cut 2; after 100ms; wait 2; after 15s
			release 1 -> [2 |]`,
		"and can be released": `
			acquire 1; wait 2; wait 3; cut 2
			release 2 -> dequeued(place released)
			release 2 -> nothing [1 | 3]`,
		"and is granted nothing and blocks no other waiter": `
			acquire 1; wait 2; wait 3; cut 2
			release 1 -> released granted@3 [3 | (2)]
			release 3; acquire 4 -> [4 | (2)]`,
		"also when the replica stops": `
			acquire 1; wait 2; wait 3
			leave 2 keep -> !lock_held kept=20s [1 | (2) 3]`,
		"and does not require its capacity of other permits": `
			acquire 1; wait 2 permit=3; cut 2; wait 3 permit=2
			wait 2 permit=3 -> [1 | 2 3]
			release 1 -> [2 | 3]
			release 2 -> [3 |]`,
		"without an event, and unblocks those behind": `
			acquire 1 shared; wait 2; wait 3 shared
			cut 2 -> granted [1 3 | (2)]`,
	})
}

// TestPlaceOfALostCall: the connection was cut after the grant, which no client knows of.
func TestPlaceOfALostCall(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"is kept, and the grant goes to the next waiter": `
			acquire 1; wait 2; wait 3; wait 4; release 1
			cut 2 -> withdrawn@2(call ended without an answer) granted wakes=3 [3 | (2) 4]
			wait 2; release 3 -> [2 | 4]`,
		"is kept with its capacity": `
			acquire 1; wait 2 permit=2; wait 3 permit=2; release 1
			cut 2 -> [3 | (2)]
			wait 2 permit=3 -> !lease_id_in_use
			call 2 permit=2 -> granted@2 [3 2 |]`,
		"does not exist if it was granted the lock without waiting": `call 1; cut 1 -> withdrawn@0 [|]`,
		"is kept for the retention if less was left of the wait": `
			acquire 1; wait 2; wait 3; release 1
			cut 2; after retention-1ms
			sweep -> [3 | (2)]; after 1ms
			sweep -> [|]`,
		"is kept for what was left of the wait": `
			acquire 1; wait 2; wait 3; release 1
			cut 2 left=15s; after 15s-1ns
			sweep -> [| (2)]; after 1ns
			sweep -> [|]`,
	})
}

// TestKeptPlace: a call asked to keep its place, and its wait is over.
func TestKeptPlace(t *testing.T) {
	t.Parallel()
	begin := `acquire 1 ttl=11s; wait 2 keep for=1s; wait 3; after 1s
		leave 2 -> !lock_held kept=retention ahead=1 [1 | (2) 3]
		`
	tell(t, story{
		"is found by the next call": begin + `
			after retention-1ns; wait 2 -> [1 | 2 3]
			release 1 -> [2 | 3]`,
		"is skipped, and continues when its client returns": begin + `
			release 1 -> [3 | (2)]
			wait 4; wait 2 -> [3 | 2 4]`,
		"does not block a new request": begin + `release 1; release 3; acquire 4 -> [4 | (2)]`,
		"is granted a free lock at once": begin + `
			release 1; release 3
			acquire 2 -> granted@2 wakes= replayed=false [2 |]`,
		"ends with an event": begin + `
			renew 1 ttl=1h; after retention-1ns
			sweep -> nothing due=1ns; after 1ns
			sweep -> dequeued(its client did not come back in time)
			wait 2 -> [1 | 3 2]`,
		"is given to a call that does not wait, too": `
			acquire 1; wait 2
			acquire 3 keep -> !lock_held queued kept=retention [1 | 2 (3)]
			acquire 3 keep -> !lock_held [1 | 2 (3)]`,
	})
}
