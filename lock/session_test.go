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

// inSession makes an acquire one of the session sessionID.
func inSession(a *lock.Acquire) { a.SessionID, a.TTL = sessionID, 0 }

// opened returns a model with a session that expires in 10 s, and has a grace of 2 s.
func opened(t *testing.T) *model {
	t.Helper()
	m := newModel(t)
	if _, err := m.change(lock.OpenSession{ID: sessionID, Holder: "worker", TTL: 10 * time.Second, Grace: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	return m
}

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

func TestALeaseEndsWithItsSession(t *testing.T) {
	t.Parallel()
	m := opened(t)
	l := m.must(acquire(1, inSession)).Lease
	if want := t0.Add(10 * time.Second); !l.ExpiresAt.Equal(want) || l.Grace != 2*time.Second {
		t.Errorf("the lease is %+v, want one until %v", l, want)
	}
	m.enqueue(2)
	m.advance(12*time.Second - 1)
	m.do(sweep)
	m.expect("1 | 2")
	m.advance(1)
	m.do(sweep)
	m.expect("2 |")
	if e := m.refused(renew(1), lock.ErrLeaseLost); e.Ended != lock.Expired {
		t.Errorf("the lease ended by %v", e.Ended)
	}
	if e := m.refused(acquire(3, inSession), lock.ErrSessionLost); e.Ended != lock.Expired || !e.EndedAt.Equal(t0.Add(12*time.Second)) {
		t.Errorf("the session ended by %v at %v", e.Ended, e.EndedAt)
	}
}

func TestAHeartbeatKeepsLeasesAndPlaces(t *testing.T) {
	t.Parallel()
	m := opened(t)
	m.must(acquire(1, inSession, shared))
	m.enqueue(2, inSession, func(a *lock.Acquire) { a.Task = "another" })
	for range 5 {
		m.advance(11 * time.Second)
		if _, err := m.change(lock.RenewSession{ID: sessionID}); err != nil {
			t.Fatal(err)
		}
		m.must(sweep)
	}
	m.expect("1 |") // the call of the waiter ended long ago, and its place with it
}

// TestAWaiterLeavesWithItsSession, and its call is woken; those behind it are served.
func TestAWaiterLeavesWithItsSession(t *testing.T) {
	t.Parallel()
	for how, end := range map[lock.Kind]func(*model){
		lock.Expired: func(m *model) { m.advance(12 * time.Second) },
		lock.Released: func(m *model) {
			if _, err := m.change(lock.CloseSession{ID: sessionID}); err != nil {
				t.Error(err)
			}
		},
		lock.Revoked: func(m *model) {
			if _, err := m.change(lock.RevokeSession{Ref: sessionID.Ref(), Reason: "r"}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			m := opened(t)
			m.must(acquire(1, shared, func(a *lock.Acquire) { a.TTL = time.Minute }))
			gone := m.enqueue(2, inSession)
			m.enqueue(3, shared)
			m.expect("1 | 2 3")
			end(m)
			d := m.must(lock.EndSession{Name: name, Ref: sessionID.Ref(), How: how, Reason: "r"})
			m.expect("1 3 |")
			if len(d.Ousted) != 1 || d.Ousted[0].Attachment != gone.Attachment {
				t.Errorf("the calls to wake are %+v", d.Ousted)
			}
			asks := claim(gone)
			asks.SessionID = sessionID
			if e := m.refused(asks, lock.ErrSessionLost); e.Ended != how {
				t.Errorf("the call is told that the session ended by %v", e.Ended)
			}
			leaves := endWait(gone)
			leaves.SessionID = sessionID
			m.refused(leaves, lock.ErrSessionLost)
		})
	}
}

// TestAnUnclaimedGrantOfALostSessionIsWithdrawn, and its waiter does not return to the queue.
func TestAnUnclaimedGrantOfALostSessionIsWithdrawn(t *testing.T) {
	t.Parallel()
	m := opened(t)
	m.must(acquire(1, func(a *lock.Acquire) { a.TTL = 11 * time.Second }))
	m.on(2).enqueue(2, inSession)
	m.advance(11 * time.Second)
	m.on(1).must(sweep)
	m.expect("2? | 2")
	m.advance(time.Second) // within the claim timeout
	m.must(sweep)
	m.expect("|")
}

// TestAWaiterIsWokenThatIsGrantedTheLockAsItsSessionEnds: the decision that ends what a closed session has finds the
// lock free.
func TestAWaiterIsWokenThatIsGrantedTheLockAsItsSessionEnds(t *testing.T) {
	t.Parallel()
	for _, decides := range []lock.Replica{1, 2} {
		m := opened(t)
		m.must(acquire(1, func(a *lock.Acquire) { a.TTL = 9 * time.Second }))
		waits := m.enqueue(2, inSession)
		m.advance(9 * time.Second)
		if _, err := m.change(lock.CloseSession{ID: sessionID}); err != nil {
			t.Fatal(err)
		}
		d := m.on(decides).must(lock.EndSession{Name: name, Ref: sessionID.Ref(), How: lock.Released})
		m.expect("|")
		if len(d.Ousted) != 1 || d.Ousted[0].Attachment != waits.Attachment || len(d.Promoted) > 0 {
			t.Errorf("replica %d wakes %+v, and tells %+v of a grant", decides, d.Ousted, d.Promoted)
		}
	}
}

func TestASessionWithALeaseThatEndsEarlier(t *testing.T) {
	t.Parallel()
	m := opened(t)
	l := m.must(acquire(1, inSession, func(a *lock.Acquire) { a.MaxHold = 3 * time.Second })).Lease
	if !l.ExpiresAt.Equal(t0.Add(3 * time.Second)) {
		t.Errorf("the lease ends at %v", l.ExpiresAt)
	}
	m.advance(4 * time.Second)
	m.refused(renew(1), lock.ErrLeaseLost)
	m.advance(time.Second)
	m.must(sweep)
	m.expect("|")
	m.must(acquire(2, inSession))
}

func TestALeaseIDBelongsToItsSession(t *testing.T) {
	t.Parallel()
	m := opened(t)
	other := lock.SessionID{15: 8}
	if _, err := m.change(lock.OpenSession{ID: other, Holder: "worker", TTL: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	m.must(acquire(1, inSession))
	m.refused(acquire(1), lock.ErrLeaseIDInUse)
	m.refused(acquire(1, inSession, func(a *lock.Acquire) { a.SessionID = other }), lock.ErrLeaseIDInUse)
	if d := m.must(acquire(1, inSession)); !d.Replayed {
		t.Errorf("decided %+v", d)
	}
}

func TestAFullSessionFindsWhatItHas(t *testing.T) {
	t.Parallel()
	m := opened(t)
	m.must(acquire(1, inSession, shared))
	full := func(a *lock.Acquire) { a.SessionFull = true }
	if d := m.must(acquire(1, inSession, shared, full)); !d.Replayed {
		t.Errorf("found %+v", d.Lease)
	}
	m.refused(acquire(2, inSession, shared, full), lock.ErrTooManyLeases)
	m.expect("1 |")
}

// TestALockAheadOfTheClockKeepsSessions: the clock was set back. A session ends by the clock, by which it is renewed.
func TestALockAheadOfTheClockKeepsSessions(t *testing.T) {
	t.Parallel()
	m := opened(t)
	m.advance(9 * time.Second)
	m.must(acquire(1, inSession, shared))
	m.advance(-8 * time.Second)
	if _, err := m.change(lock.RenewSession{ID: sessionID}); err != nil {
		t.Fatal(err)
	}
	m.advance(10 * time.Second)
	m.must(acquire(2, inSession, shared))
	m.expect("1 2 |")
}

// TestASessionsAcquireHasNoTTL: the default of others would count as that of the longest lease.
func TestASessionsAcquireHasNoTTL(t *testing.T) {
	t.Parallel()
	if a := within(lock.Bounds{}, lock.Acquire{Name: name, Holder: "a", SessionID: sessionID}); a.TTL != 0 || a.Mode != lock.Exclusive {
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
