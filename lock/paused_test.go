package lock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestThePauseHasACauseThatMayBeAnOperator: the rules do not know which of the causes it has.
func TestThePauseHasACauseThatMayBeAnOperator(t *testing.T) {
	t.Parallel()
	d := acquire(1).Apply(lock.View{Now: t0, GrantsPausedUntil: t0.Add(time.Minute), Locks: []lock.Record{{Name: name}}})
	for _, cause := range []string{"New grants are paused for 1 min 0 s;", "failed over", "restored", "created again", "an operator began an epoch"} {
		if d.Err == nil || !strings.Contains(d.Err.Error(), cause) {
			t.Errorf("%v: does not say %s", d.Err, cause)
		}
	}
}

// TestPausedGrants: grants are paused after a fail-over or a restore, or when an operator begins an epoch.
func TestPausedGrants(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"a free lock is unavailable until the end of the pause": `
			acquire 1; pause 1m; release 1; after 10s
			acquire 2 -> !unavailable retry=50s; after 50s
			acquire 2`,
		"an existing lease stays valid and blocks others": `
			acquire 1; pause 1m; renew 1
			acquire 1 -> replayed=true
			acquire 2 -> !lock_held holder=worker
			release 1`,
		"a reader is not granted beside other readers": `acquire 1 shared; pause 1m; acquire 2 shared -> !lock_held`,
		"a waiter is granted the lock at the end of the pause, and a sweep is due then": `
			acquire 1; release 1; pause 25s
			wait 2 for=maxwait -> due=25s; after 25s
			sweep -> granted wakes=2 [2 |]`,
		"a wait that ends during the pause is refused as unavailable": `
			acquire 1; pause 1m; release 1; wait 2; after 20s
			leave 2 -> !unavailable`,
	})
}
