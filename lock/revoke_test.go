package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// testGrace is the grace of the leases in these tests.
const testGrace = 5 * time.Second

func withGrace(a *lock.Acquire) { a.Grace = testGrace }

func revoke(token lock.Token, slot *int) lock.Revoke {
	return lock.Revoke{Name: name, Token: token, Slot: slot, Reason: "maintenance"}
}

func slot(n int) *int { return &n }

func revokeSkippingGrace(token lock.Token) lock.Revoke {
	r := revoke(token, nil)
	r.SkipGrace = true
	return r
}

func TestRevocationKeepsTheGrace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before time.Duration // time since the grant of a 10 s lease
		cmd    lock.Revoke
		left   time.Duration // of the grace after the revocation; zero: the lock is free at once
	}{
		{"of a held lease", 3 * time.Second, revoke(1, nil), testGrace},
		{"at the last instant of the TTL", 10*time.Second - 1, revoke(1, nil), testGrace},
		{"at the end of the TTL", 10 * time.Second, revoke(1, nil), testGrace},
		{"during the grace", 12 * time.Second, revoke(1, nil), 3 * time.Second},
		{"of a held lease, skipping the grace", 3 * time.Second, revokeSkippingGrace(1), 0},
		{"during the grace, skipping the rest", 12 * time.Second, revokeSkippingGrace(1), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newModel(t)
			w.must(acquire(1, withGrace))
			w.advance(c.before)
			d := w.must(c.cmd)
			l := w.record.Lock(w.now)
			if kinds(d) != "revoked " || l.NextChangeAt().IsZero() != (c.left == 0) {
				t.Errorf("decided %v and changes next at %v", kinds(d), l.NextChangeAt())
			}
			if c.left > 0 {
				if l.State != lock.InGrace || len(l.Leases) != 1 || !l.Leases[0].Revoked ||
					l.Leases[0].Remaining != 0 ||
					!d.Due.Equal(w.now.Add(c.left)) {
					t.Errorf("the lock is %+v, due %v", l, d.Due)
				}
				w.advance(c.left - 1)
				if e := w.refused(acquire(2), lock.ErrHeld); e.RetryAfter != 1 || e.Holder != "worker" {
					t.Errorf("refused with %+v", e)
				}
				w.advance(1)
			}
			if l := w.record.Lock(w.now); l.State != lock.Free || len(l.Leases) != 0 {
				t.Errorf("after the grace the lock is %+v", l)
			}
			if d := w.must(acquire(2)); kinds(d) != "granted " || leaseOf(d).Token != 2 {
				t.Errorf("decided %v, %+v", kinds(d), leaseOf(d))
			}
		})
	}
}

func TestHolderOfARevokedLeaseIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for what, cmd := range map[string]lock.Command{
		"a renewal": renew(1), "a release": release(1), "the acquire repeated": acquire(1, withGrace),
		"an acquire that waits": lock.Acquire{Locks: []lock.Member{{Name: name, Mode: lock.Exclusive}}, LeaseID: id(1), Holder: "worker", TTL: time.Second, Wait: time.Second, Attachment: 9, Replica: 1},
		"a claim":               lock.Claim{Locks: []string{name}, LeaseID: id(1)},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newModel(t)
			w.must(acquire(1, withGrace))
			w.advance(time.Second)
			w.must(revoke(1, nil))
			revoked := w.now
			for _, after := range []time.Duration{0, testGrace - 1, 1, time.Hour} {
				w.advance(after)
				e := w.refused(cmd, lock.ErrLeaseLost)
				if e.Ended != lock.Revoked || e.Reason != "maintenance" || e.Token != 1 || !e.EndedAt.Equal(revoked) {
					t.Errorf("refused with %+v", e)
				}
				if left := max(testGrace-w.now.Sub(revoked), 0); what == "a renewal" && e.GraceLeft != left {
					t.Errorf("the renewal is refused with %v of the grace left, want %v", e.GraceLeft, left)
				}
			}
		})
	}
}

// TestARevocationThatSkipsTheGraceLeavesNone: another client may have the lock at once.
func TestARevocationThatSkipsTheGraceLeavesNone(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, withGrace))
	w.must(revokeSkippingGrace(1))
	if e := w.refused(renew(1), lock.ErrLeaseLost); e.GraceLeft != 0 {
		t.Errorf("refused with %v of the grace left", e.GraceLeft)
	}
}

// TestTokenOfARevokedLeaseHasEnded: it verifies so, and a fenced write with a revoked permit of a slot is refused.
func TestTokenOfARevokedLeaseHasEnded(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, permit(2), withGrace))
	w.must(revoke(1, nil))
	verify := lock.Verify{Name: name, Token: 1}
	if v := verify.Check(w.record, w.now); v.Status != lock.Ended || v.Remaining != 0 {
		t.Errorf("the verification is %+v", v)
	}
	if newest, err := (lock.FencedWrite{Lock: name, Token: 1}).RequiredToken(w.record, w.now); newest != 1 || err != nil {
		t.Errorf("a fenced write needs token %d, %v", newest, err)
	}
	if _, err := (lock.FencedWrite{Lock: name, Token: 1, Slot: 1}).RequiredToken(w.record, w.now); !errors.Is(err, lock.ErrStaleToken) {
		t.Errorf("a fenced write in its slot is answered with %v", err)
	}
	w.must(acquire(2, permit(2)))
	if v := (lock.Verify{Name: name, Token: 2}).Check(w.record, w.now); v.Status != lock.Current {
		t.Errorf("beside it, the verification is %+v", v)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"ends the lease and tells its holder the reason": `
			acquire 1; revoke 1 -> revoked(maintenance)
			renew 1 -> !lease_lost(maintenance) ended=revoked
			acquire 2 -> token=2`,
		"is refused for a token that does not hold the lock": `
			revoke 7 -> !token_mismatch
			acquire 1; revoke 7 -> !token_mismatch token=7 newest=1
			release 1; revoke 1 -> !token_mismatch`,
		"succeeds when repeated before the next grant, and changes nothing": `
			acquire 1 grace=5s; revoke 1; after 1s
			revoke 1 -> nothing due=4s; after 5s
			revoke 1
			acquire 2; revoke 1 -> !token_mismatch`,
		"can skip the rest of the grace when repeated, with its own event": `
			acquire 1 grace=5s; wait 2; revoke 1; after 1s
			revoke 1 skip -> revoked granted [2 |]
			renew 1 -> !lease_lost(maintenance) at=-1s
			revoke 1 skip -> !token_mismatch`,
		"can be repeated if it skips the grace": `acquire 1 grace=5s; revoke 1 skip; revoke 1 skip -> nothing`,
		"grants the lock to the next waiter after the grace": `
			acquire 1 grace=5s; wait 2; on 2; wait 3; on 1
			revoke 1 -> revoked wakes= due=5s [1! | 2 3]; after 5s-1ns
			sweep -> nothing; after 1ns
			sweep -> granted wakes=2 [2 | 3]
			sweep -> nothing`,
	})
}

func TestRevokeOneOfSeveral(t *testing.T) {
	t.Parallel()
	threeReaders := `acquire 1 shared; acquire 2 shared; acquire 3 shared; wait 4
		`
	tell(t, story{
		"by the token all readers, and the waiter is promoted": threeReaders + `
			revoke 1 -> revoked revoked revoked granted [4 |]
			renew 1 -> !lease_lost(maintenance); renew 2 -> !lease_lost(maintenance); renew 3 -> !lease_lost(maintenance)`,
		"by the slot one reader": threeReaders + `
			revoke 1 slot=2 -> [1 3 | 4]
			renew 2 -> !lease_lost(maintenance)
			revoke 1 slot=2 -> !token_mismatch`,
		"by the slot of one that has gone, after the last one": `
			acquire 1 shared; acquire 2 shared; release 2
			revoke 1 slot=1
			revoke 1 slot=2 -> nothing; acquire 3; revoke 1 slot=2 -> !token_mismatch`,
		"by its token a permit": `
			acquire 1 permit=2; acquire 2 permit=2; wait 3 permit=2
			revoke 1 slot=2 -> !token_mismatch
			revoke 1 -> [2 3 |]`,
		"not a later reader in the same slot with the same token": threeReaders + `
			release 2; release 4; after 1s; acquire 5 shared -> token=1 slot=2
			revoke 1 slot=2 since=0s -> !token_mismatch [1 3 5 |]
			revoke 1 slot=2 since=1s -> [1 3 |]`,
		"a reader granted in the same decision, without a notification": `
			acquire 1 shared ttl=1h; wait 2 for=1s; wait 3 shared; after 2s
			revoke 1 -> granted revoked revoked wakes=`,
		"a reader, whose grace blocks writers only": `
			acquire 1 shared grace=5s; acquire 2 shared
			revoke 1 slot=1 -> [1! 2 |]
			acquire 3 shared -> token=1 slot=3
			renew 2; wait 4; release 2
			release 3 -> [1! | 4]; after 5s
			sweep -> [4 |]`,
		"all readers, and the next one has a new token": `
			acquire 1 shared grace=5s; acquire 2 shared grace=5s
			revoke 1 -> [1! 2! |]
			acquire 3 shared -> token=2 slot=3
			revoke 1 -> nothing
			renew 3; after 5s
			sweep -> [3 |]
			revoke 1 -> !token_mismatch`,
		"a permit, which keeps its slot for its grace": `
			acquire 1 permit=2 grace=5s; acquire 2 permit=2; wait 3 permit=2
			revoke 1 -> [1! 2 | 3]
			release 2 -> capacity=2 [1! 3 |]
			acquire 4 permit=3 -> !capacity_mismatch
			acquire 4 permit=2 -> !lock_held
			release 3; after 5s
			acquire 4 permit=3`,
	})
}

func TestRepeatedRevocationInGraceSucceedsBesideAReader(t *testing.T) {
	t.Parallel()
	m := newSetModel(t)
	set := []lock.Member{{Name: "a", Mode: lock.Shared}, {Name: "b", Mode: lock.Shared}}
	_, first := m.acquire(lock.Acquire{LeaseID: id(1), Holder: "one", TTL: 10 * time.Second, Grace: 10 * time.Second, Locks: set})
	revoke := func() error {
		d := m.applyAll(lock.Revoke{Name: "a", Token: first.Leases[0].Token, Reason: "test"})
		for ; d.FollowUp != nil; d = m.applyAll(d.FollowUp) {
		}
		return d.Err
	}
	if err := revoke(); err != nil {
		t.Fatal(err)
	}
	if _, d := m.acquire(lock.Acquire{Locks: []lock.Member{{Name: "a", Mode: lock.Shared}}, LeaseID: id(2), Holder: "two", TTL: 10 * time.Second}); d.Err != nil {
		t.Fatal(d.Err)
	}
	if err := revoke(); err != nil {
		t.Errorf("the repeated revocation was refused: %v", err)
	}
}
