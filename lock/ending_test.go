package lock_test

import "testing"

func TestRelease(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"frees the lock, and a repeated release changes nothing": `acquire 1; release 1; release 1 -> nothing state=free`,
		"succeeds when repeated under the next holder, and does not affect it": `
			acquire 1; release 1; acquire 2
			release 1 -> nothing [2 |]`,
		"of an expired lease is refused as expired": `acquire 1; after 1h; release 1 -> !lease_lost ended=expired at=0s`,
		"works during the grace":                    `acquire 1 grace=1s; after 10.5s; release 1 -> released [|]`,
		"is not decided before the grant if the clock was set back": `
			acquire 1; after -1h
			release 1 -> released decided=1h`,
	})
}

func TestSweepEndsExpiredLeasesOnly(t *testing.T) {
	t.Parallel()
	tell(t, story{"once": `acquire 1; sweep -> nothing; after 10s; sweep -> expired; sweep -> nothing`})
}
