package lock_test

import "testing"

func TestAcquire(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"a free lock is granted with a token and a TTL from now": `acquire 1 -> granted token=1 begun=0s expires=10s`,
		"a held lock is refused with its holder and the time until the lease ends": `
			acquire 1 holder=first grace=2s; after 4s
			acquire 2 -> !lock_held holder=first retry=8s`,
		"the lease_id of a lease returns it with its remaining time, whatever times are asked for": `
			acquire 1; after 4s
			acquire 1 -> nothing replayed=true token=1 ttl=10s expires=6s
			acquire 1 ttl=1h grace=1s hold=1m -> nothing replayed=true token=1 ttl=10s expires=6s`,
		"another holder with the lease_id is refused": `acquire 1; acquire 1 holder=another -> !lease_id_in_use`,
		"a released lease is never granted again":     `acquire 1; release 1; acquire 1 -> !lease_lost ended=released`,
		"an expired lease is never granted again, and its acquire may be what records the expiry": `
			acquire 1; after 10s
			acquire 1 -> !lease_lost expired ended=expired [|]`,
		"a lease ends exactly at its expiry, and the next token is greater": `
			acquire 1; after 10s-1ns
			acquire 2 -> !lock_held; after 1ns
			acquire 2 -> expired granted token=2`,
		"no other client is granted the lock during the grace": `
			acquire 1 grace=1s; after 10.5s
			acquire 2 -> !lock_held state=grace; after 500ms
			acquire 2`,
		"a TTL beyond the max hold is cut":               `acquire 1 hold=3s -> expires=3s ttl=3s`,
		"a waiter's TTL beyond the max hold is cut, too": `acquire 2; wait 1 hold=3s; release 2; claim 1 -> expires=3s ttl=3s`,
	})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"moves the expiry to a TTL from now, and keeps the token": `acquire 1; after 4s; renew 1 -> expires=10s token=1 held=1 ends=10s`,
		"never moves the expiry back":                             `acquire 1; renew 1 ttl=1s -> expires=10s ttl=1s`,
		"does not accumulate":                                     `acquire 1; renew 1; renew 1; renew 1 -> held=1 ends=10s`,
		"never revives an expired lease, even if the lock is free": `
			acquire 1; after 10s
			renew 1 -> !lease_lost expired ended=expired token=1
			renew 1 -> !lease_lost`,
		"works during the grace": `acquire 1 grace=1s; after 10.5s; renew 1 -> expires=10s`,
		"never goes beyond the max hold": `
			acquire 1 hold=12s grace=1m; after 9s
			renew 1 -> expires=3s ttl=10s; renew 1 ttl=1m -> expires=3s ttl=12s; after 3s
			renew 1 -> !lease_lost`,
		"is refused for an unknown lease": `renew 9 -> !lease_lost ended=unknown at=never`,
	})
}
