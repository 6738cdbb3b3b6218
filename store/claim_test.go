package store

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// loseOneClaim ends the connection of the first commit of a claim, as if its answer
// had been lost.
const loseOneClaim = `
create sequence public.claims;
create function public.lose_claim() returns trigger language plpgsql as
	$$ begin if nextval('public.claims') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if; return null; end $$;
create constraint trigger lose_claim after update on paddock.locks deferrable initially deferred for each row
	when (old.claim_by is not null and new.claim_by is null) execute function public.lose_claim();`

// TestAWaiterWhoseClaimIsLostClaimsAgain: it is granted the lock before one behind it, and
// is told of nothing.
func TestAWaiterWhoseClaimIsLostClaimsAgain(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s, other := x.store(), x.store()
	held := x.acquires(other, wants("a"))
	x.exec(loseOneClaim)
	type answer struct {
		lock.Grant
		err error
	}
	answers := make(chan answer, 2)
	for i := range 2 {
		a := wants("a")
		a.Wait, a.Holder = lock.MaxWait, strconv.Itoa(i)
		go func() {
			g, err := s.Acquire(t.Context(), a)
			answers <- answer{g, err}
		}()
		x.until(fmt.Sprintf("select queued = %d from paddock.locks where name = 'a'", i+1))
	}
	for i := range 2 {
		if err := s.beatOnce(); err != nil { // or the other store takes this one's waiters to be gone
			t.Fatal(err)
		}
		x.releases(other, held)
		s.seats.askAll() // nobody else does: these stores do nothing unasked
		a := <-answers
		if a.err != nil || a.Holder != strconv.Itoa(i) {
			t.Fatalf("%q was answered %v, want a grant to %d", a.Holder, a.err, i)
		}
		held = a.Grant
	}
	x.until("select last_value = 3 from public.claims")
}
