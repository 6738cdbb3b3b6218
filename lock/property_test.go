package lock_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// model is what the invariants need to know beside the lock itself.
type model struct {
	*world
	over map[lock.LeaseID]bool // leases that somebody was told have ended
}

// TestInvariants drives random commands and steps of the clock, also backwards,
// against what the lock promises.
func TestInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{world: newWorld(t), over: map[lock.LeaseID]bool{}}
		lease := rapid.Custom(func(t *rapid.T) lock.LeaseID { return id(rapid.ByteRange(1, 6).Draw(t, "lease")) })
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": func(rt *rapid.T) {
				m.acquire(rt, lock.Acquire{
					Name: name, LeaseID: lease.Draw(rt, "id"), Mode: lock.Exclusive,
					Holder:  rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "holder"),
					TTL:     seconds(rt, "ttl", 1, 20),
					Grace:   seconds(rt, "grace", 0, 3),
					MaxHold: seconds(rt, "max hold", 0, 30),
				})
			},
			"renew": func(rt *rapid.T) {
				m.renew(rt, lock.Renew{Name: name, LeaseID: lease.Draw(rt, "id"), TTL: seconds(rt, "ttl", 0, 20)})
			},
			"release": func(rt *rapid.T) { m.release(rt, lock.Release{Name: name, LeaseID: lease.Draw(rt, "id")}) },
			"revoke": func(rt *rapid.T) {
				m.revoke(rt, lock.Revoke{Name: name, Token: lock.Token(rapid.Int64Range(1, int64(m.token)+1).Draw(rt, "token")), Reason: "r"})
			},
			"expire": func(*rapid.T) { m.do(lock.Expire{Name: name}) },
			"clock":  func(rt *rapid.T) { m.pass(seconds(rt, "step", -5, 15)) },
			"":       m.check,
		})
	})
}

func seconds(t *rapid.T, label string, least, greatest int) time.Duration {
	return time.Duration(rapid.IntRange(least, greatest).Draw(t, label)) * time.Second
}

// at is the instant at which the lock decides.
func (m *model) at() time.Time {
	if m.now.Before(m.state.ChangedAt) {
		return m.state.ChangedAt
	}
	return m.now
}

func (m *model) acquire(t *rapid.T, a lock.Acquire) {
	live, newest := m.state.Live(m.at()), m.state.Token
	d := m.do(a)
	switch {
	case d.Err != nil:
		if errors.Is(d.Err, lock.ErrHeld) && len(live) == 0 {
			t.Fatalf("refused although nobody has the lock")
		}
	case d.Replay:
		if len(live) != 1 || live[0].ID != a.LeaseID {
			t.Fatalf("replayed a lease that is over")
		}
	default:
		if len(live) > 0 {
			t.Fatalf("two leases at once: %v and %v", live[0].Token, d.Grant.Token)
		}
		if d.Grant.Token <= newest {
			t.Fatalf("token %d was granted after %d", d.Grant.Token, newest)
		}
		if m.over[a.LeaseID] {
			t.Fatalf("an ended lease was granted again")
		}
	}
}

func (m *model) renew(t *rapid.T, r lock.Renew) {
	live := m.state.Live(m.at())
	mine := len(live) == 1 && live[0].ID == r.LeaseID
	d := m.do(r)
	if d.Err != nil {
		return
	}
	if !mine {
		t.Fatalf("renewed a lease that was over")
	}
	if d.Grant.ExpiresAt.Before(live[0].ExpiresAt) || d.Grant.Token != live[0].Token {
		t.Fatalf("renewed %+v to %+v", live[0], d.Grant)
	}
	if hold := d.Grant.ExpiresAt.Sub(d.Grant.AcquiredAt); d.Grant.MaxHold > 0 && hold > d.Grant.MaxHold {
		t.Fatalf("held for %v of at most %v", hold, d.Grant.MaxHold)
	}
}

func (m *model) release(t *rapid.T, r lock.Release) {
	others := 0
	for _, l := range m.state.Live(m.at()) {
		if l.ID != r.LeaseID {
			others++
		}
	}
	if d := m.do(r); len(d.Locks[0].Leases) != others {
		t.Fatalf("a release took somebody else's lease, or left its own")
	}
}

func (m *model) revoke(t *rapid.T, r lock.Revoke) {
	newest := m.state.Token
	if d := m.do(r); d.Err == nil && r.Token != newest {
		t.Fatalf("revoked token %d, the newest is %d", r.Token, newest)
	}
}

// check holds after each step: at most one lease; revisions without gaps; events
// that by themselves show no two holds at once, tokens that grow and a time that
// does not run backwards.
func (m *model) check(t *rapid.T) {
	if len(m.state.Leases) > 1 {
		t.Fatalf("%d leases", len(m.state.Leases))
	}
	var holding, newest lock.Token
	at := t0.Add(-time.Hour)
	for i, e := range m.events {
		if e.Revision != int64(i+1) {
			t.Fatalf("event %d has revision %d", i, e.Revision)
		}
		if e.At.Before(at) {
			t.Fatalf("event %d is from before the one before it", i)
		}
		at = e.At
		switch {
		case e.Kind == lock.Granted && (holding != 0 || e.Token <= newest):
			t.Fatalf("token %d was granted while %d held, after %d", e.Token, holding, newest)
		case e.Kind == lock.Granted:
			holding, newest = e.Token, e.Token
		case e.Token != holding:
			t.Fatalf("%v of token %d while %d held", e.Kind, e.Token, holding)
		default:
			holding = 0
		}
	}
	for n := byte(1); n <= 6; n++ {
		if _, ended := m.ended[lock.RefOf(name, id(n))]; ended {
			m.over[id(n)] = true
		}
	}
}
