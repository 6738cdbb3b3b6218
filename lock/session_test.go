package lock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

var sessionID = lock.SessionID{15: 7}

func TestSessionIDsAreSecretAndRefsAreNot(t *testing.T) {
	t.Parallel()
	if text := fmt.Sprintf("%v %s %#v", sessionID, sessionID, sessionID); strings.Contains(text, "7") {
		t.Errorf("a session_id is printed as %s", text)
	}
	ref := sessionID.Ref()
	if got, err := lock.ParseSessionRef("session", ref.String()); got != ref || err != nil {
		t.Errorf("%v is read as %v, %v", ref, got, err)
	}
	if ref <= 0 || ref == (lock.SessionID{15: 8}).Ref() || (lock.SessionID{}).Ref() != 0 {
		t.Errorf("the ref is %v", ref)
	}
	for _, text := range []string{
		"", "0", "0000000000000000", "7", "ffffffffffffffff", strings.ToUpper(ref.String()) + "A", "+" + ref.String()[1:],
		"00000000-0000-0000-0000-000000000007",
	} {
		if _, err := lock.ParseSessionRef("session", text); !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("%q is read: %v", text, err)
		}
	}
}

func TestCellsOfASession(t *testing.T) {
	t.Parallel()
	now := time.Now()
	open := lock.OpenSession{ID: sessionID, Holder: "worker", TTL: time.Minute, Cells: lock.Registered}
	s, _, err := open.Change(nil, now)
	if err != nil || s.Cells != lock.Registered {
		t.Fatalf("registered, it is %+v, %v", s, err)
	}
	acquire := lock.Acquire{Locks: lock.One("name"), Holder: "worker", LeaseID: lock.LeaseID{15: 1}, SessionID: sessionID}
	view := lock.View{Now: now, Locks: []lock.Record{{Name: "name"}}, Sessions: map[lock.SessionRef]lock.Session{sessionID.Ref(): s}}
	if d := acquire.Apply(view); !errors.Is(d.Err, lock.ErrSessionLost) {
		t.Errorf("a lease in a session that is only registered has the error %v", d.Err)
	}
	for _, c := range []struct{ added, want lock.CellSet }{
		{lock.Registered | 4, lock.Registered | 4}, {lock.Registered, lock.Registered | 4}, {2, 6}, {lock.Registered, 6}, {0, 6}, {lock.Registered | 1<<62, 1<<62 | 6},
	} {
		open.Cells = c.added
		if s, _, err = open.Change(&s, now); err != nil || s.Cells != c.want {
			t.Errorf("with %x the cells are %x, %v, want %x", c.added, s.Cells, err, c.want)
		}
	}
	if s.Cells.Has(0) || !s.Cells.Has(1) || !s.Cells.Has(2) || !s.Cells.Has(62) || lock.Registered.Has(5) {
		t.Errorf("the cells are %b", s.Cells)
	}
}

func TestLeasesAndPlacesOfASession(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"end with it": `
			open 7; acquire 1 in=7 -> expires=10s; wait 2; after 12s-1ns
			sweep -> [1 | 2]; after 1ns
			sweep -> [2 |]
			renew 1 -> !lease_lost(session expired) ended=expired
			acquire 3 in=7 -> !session_lost ended=expired at=0s`,
		"are kept by its heartbeats, places until the wait is over": `
			open 7; acquire 1 in=7 shared; wait 2 in=7 task=another; after 11s; heartbeat 7; sweep -> [1 | 2]
			after 11s; heartbeat 7; sweep; after 11s; heartbeat 7; sweep -> [1 |]`,
		"leave the queue when it expires, and its call is woken": `
			open 7; acquire 1 shared ttl=1m; wait 2 in=7; wait 3 shared; after 12s
			end 7 -> ousts=2 [1 3 |]
			claim 2 -> !session_lost ended=expired
			leave 2 -> !session_lost ended=expired`,
		"leave the queue when it is closed, and its call is woken": `
			open 7; acquire 1 shared ttl=1m; wait 2 in=7; wait 3 shared; close 7
			end 7 -> ousts=2 [1 3 |]
			claim 2 -> !session_lost ended=released
			leave 2 -> !session_lost ended=released`,
		"leave the queue when it is revoked, and its call is woken": `
			open 7; acquire 1 shared ttl=1m; wait 2 in=7; wait 3 shared; ban 7
			end 7 -> ousts=2 [1 3 |]
			claim 2 -> !session_lost(maintenance) ended=revoked
			leave 2 -> !session_lost(maintenance) ended=revoked`,
		"are withdrawn while a grant is unclaimed, and do not return to the queue": `
			open 7; acquire 1 ttl=11s; on 2; wait 2 in=7; after 11s; on 1
			sweep -> [2? | 2]; after 1s
			sweep -> [|]`,
		"are ended by a decision that finds the lock free, and the call is woken": `
			open 7; acquire 1 ttl=9s; wait 2 in=7; after 9s; close 7
			end 7 -> ousts=2 wakes= [|]`,
		"are ended so at another replica, too": `
			open 7; acquire 1 ttl=9s; wait 2 in=7; after 9s; close 7; on 2
			end 7 -> ousts=2 wakes= [|]`,
		"may end earlier": `
			open 7; acquire 1 in=7 hold=3s -> expires=3s; after 4s
			renew 1 -> !lease_lost; after 1s
			sweep -> [|]
			acquire 2 in=7`,
		"have lease_ids of their own": `
			open 7; open 8; acquire 1 in=7
			acquire 1 -> !lease_id_in_use
			acquire 1 in=8 -> !lease_id_in_use
			acquire 1 in=7 -> replayed=true`,
		"are found when it is full": `
			open 7; acquire 1 in=7 shared
			acquire 1 in=7 shared full -> replayed=true
			acquire 2 in=7 shared full -> !too_many_leases [1 |]`,
		"end by the clock by which it is renewed, even if a lock is ahead of that, for the clock was set back": `
			open 7; after 9s; acquire 1 in=7 shared; after -8s; heartbeat 7; after 10s
			acquire 2 in=7 shared -> [1 2 |]`,
	})
}

// TestASessionLosesALease by a revocation of the lease, once; by nothing that its holder has asked for or can foresee.
func TestASessionLosesALease(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"when that is revoked": `
			open 7; acquire 1 in=7
			revoke 1 -> revoked losses=7
			revoke 1 -> quiet losses=`,
		"when that is revoked at once": `
			open 7; acquire 1 in=7
			revoke 1 skip -> revoked losses=7 [|]`,
		"once, if an operator skips the grace later": `
			open 7; acquire 1 in=7
			revoke 1 -> losses=7
			revoke 1 skip -> revoked losses= [|]`,
		"in its grace": `
			open 7; acquire 1 in=7; after 11s
			revoke 1 -> revoked losses=7`,
		"one of several readers' sessions, each": `
			open 7; open 8; acquire 1 in=7 shared; acquire 2 in=8 shared; acquire 3 in=8 shared; acquire 4 shared
			revoke 1 -> losses=7,8,8`,
		"only of the slot that is revoked": `
			open 7; open 8; acquire 1 in=7 permit=2; acquire 2 in=8 permit=2
			revoke 2 slot=2 -> losses=8`,
		"that no client knows of yet": `
			open 7; acquire 1 ttl=9s; on 2; wait 2 in=7; on 1; release 1
			revoke 2 -> revoked losses=7`,
		"not by a revocation of a lease without a session": `
			open 7; acquire 1
			revoke 1 -> revoked losses=`,
		"not by a release": `
			open 7; acquire 1 in=7
			release 1 -> released losses=`,
		"not at its max hold": `
			open 7; acquire 1 in=7 hold=3s; after 5s
			sweep -> expired losses=`,
		"not by its own end": `
			open 7; open 8; open 9; acquire 1 in=7 shared; acquire 2 in=8 shared; acquire 3 in=9 shared; close 7; ban 8
			end 7 -> released losses=
			end 8 -> revoked losses=; after 12s
			end 9 -> losses=`,
	})
}

// TestASessionsAcquireHasNoTTL: the default of others would count as that of the longest lease.
func TestASessionsAcquireHasNoTTL(t *testing.T) {
	t.Parallel()
	if a := within(lock.Bounds{}, lock.Acquire{Locks: lock.One(name), Holder: "a", SessionID: sessionID}); a.TTL != 0 || a.Locks[0].Mode != lock.Exclusive {
		t.Errorf("the acquire is resolved as %+v", a)
	}
}

func TestSessionChangesAreBounded(t *testing.T) {
	t.Parallel()
	b, err := lock.Bounds{}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	errOf := func(_ any, err error) error { return err }
	for field, err := range map[string]error{
		"ttl_ms":     errOf(lock.OpenSession{Holder: "a", TTL: 1}.Resolve(b)),
		"grace_ms":   errOf(lock.OpenSession{Holder: "a", Grace: time.Hour}.Resolve(b)),
		"holder":     errOf(lock.OpenSession{Holder: " "}.Resolve(b)),
		"metadata":   errOf(lock.OpenSession{Holder: "a", Metadata: []byte(`[]`)}.Resolve(b)),
		"session_id": errOf(lock.RenewSession{}.Resolve(b)),
		"reason":     errOf(lock.RevokeSession{Ref: 1}.Resolve()),
	} {
		var e *lock.Error
		if !errors.As(err, &e) || e.Code != lock.ErrInvalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
