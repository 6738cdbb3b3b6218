package lock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func staying(a *lock.Acquire) { a.Stays, a.TTL, a.Grace = true, time.Minute, time.Second }

// TestALeaseThatStaysIsSuspectAndNeverEndsByItself: for a day no other call is granted the lock, and one event tells so.
func TestALeaseThatStaysIsSuspectAndNeverEndsByItself(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, staying))
	w.advance(time.Minute)
	if l := w.record.Lock(w.now); l.State != lock.InGrace {
		t.Errorf("at its end the lock is %s", l.State)
	}
	w.refused(acquire(2), lock.ErrHeld)
	w.advance(time.Second)
	if l := w.record.Lock(w.now); l.State != lock.Suspect || !l.Leases[0].Suspect {
		t.Errorf("after its grace the lock is %+v", l)
	}
	d := w.must(lock.Sweep{Locks: []string{name}})
	if len(d.Events) != 1 || d.Events[0].Kind != lock.Suspected || d.Events[0].Token != 1 || !d.Due.IsZero() {
		t.Errorf("the sweep emits %+v, and is due again at %v", d.Events, d.Due)
	}
	for range 3 {
		w.advance(8 * time.Hour)
		if d := w.must(lock.Sweep{Locks: []string{name}}); d.Changed {
			t.Errorf("a later sweep emits %+v", d.Events)
		}
		e := w.refused(acquire(2), lock.ErrHeld)
		if !e.Suspect || e.RetryAfter > time.Hour || !strings.Contains(e.Detail, "suspect") || !strings.Contains(e.Detail, "revokes") {
			t.Errorf("the refusal says %q, and to retry after %v", e.Detail, e.RetryAfter)
		}
	}
}

// TestASuspectLeaseEndsByItsHolderOrAnOperator, and is held again after a renewal.
func TestASuspectLeaseEndsByItsHolderOrAnOperator(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]lock.Command{"released": release(1), "revoked": revoke(1, nil)} {
		w := newModel(t)
		w.must(acquire(1, staying))
		for range 2 {
			w.advance(time.Hour)
			w.must(renew(1))
			if l := w.record.Lock(w.now); l.State != lock.Held || !l.Leases[0].ExpiresAt.Equal(w.now.Add(time.Minute)) {
				t.Errorf("after a renewal the lock is %+v", l)
			}
		}
		w.advance(time.Hour)
		waiter := w.enqueue(2)
		w.must(end)
		if l := w.record.Lock(w.now); l.State != lock.Held || l.Leases[0].Holder != waiter.Holder {
			t.Errorf("%s, it is %+v", what, l)
		}
	}
}

func TestALeaseThatStaysIsRefusedWhereItMayBeLost(t *testing.T) {
	t.Parallel()
	v := lock.View{Now: t0, Locks: []lock.Record{{Name: name}}, LeasesMayBeLost: true, Tokens: func() lock.Token { return 1 }}
	d := acquire(1, staying).Apply(v)
	if e := (*lock.Error)(nil); !errors.As(d.Err, &e) || e.Code != lock.ErrInvalid || e.Field != "on_expiry" {
		t.Errorf("it is answered with %v", d.Err)
	}
	if d = acquire(1).Apply(v); d.Err != nil {
		t.Error(d.Err)
	}
}

// TestASuspectIntentionBlocksTheTree: the lock above is not granted, and shows what is suspect below.
func TestASuspectIntentionBlocksTheTree(t *testing.T) {
	t.Parallel()
	l := lock.Lease{ID: id(1), Name: "a", Slot: 1, Mode: lock.IntentionExclusive, Holder: "h", Token: 1, TTL: time.Minute, Stays: true,
		AcquiredAt: t0, ExpiresAt: t0.Add(time.Minute), Set: []string{"a", "a:b"}, Below: []string{"a:b"}}
	r := lock.Record{Name: "a", Token: 1, Revision: 1, Leases: []lock.Lease{l}}
	later := t0.Add(time.Hour)
	if below := r.Lock(later).Below; !slices.ContainsFunc(below, func(i lock.LeaseInfo) bool { return i.Suspect }) {
		t.Errorf("below are %+v", below)
	}
	v := lock.View{Now: later, Locks: []lock.Record{r}, Tokens: func() lock.Token { return 2 }}
	a := acquire(2)
	a.Locks = lock.One("a")
	d := a.Apply(v)
	if e := (*lock.Error)(nil); !errors.As(d.Err, &e) || e.Code != lock.ErrHeld || !e.Suspect {
		t.Errorf("the lock above is answered with %v", d.Err)
	}
}

// TestARefusalOfSeveralLocksSaysWhichIsSuspect.
func TestARefusalOfSeveralLocksSaysWhichIsSuspect(t *testing.T) {
	t.Parallel()
	held := func(name string, stays bool, ttl time.Duration) lock.Record {
		l := lock.Lease{ID: id(1), Name: name, Mode: lock.Exclusive, Holder: "h", Token: 1, TTL: ttl, Stays: stays, AcquiredAt: t0, ExpiresAt: t0.Add(ttl)}
		return lock.Record{Name: name, Token: 1, Revision: 1, Leases: []lock.Lease{l}}
	}
	v := lock.View{Now: t0.Add(time.Hour), Locks: []lock.Record{held("a", true, time.Minute), held("b", false, 24*time.Hour)}, Tokens: func() lock.Token { return 2 }}
	a := acquire(2)
	a.Locks = []lock.Member{{Name: "a"}, {Name: "b"}}
	d := a.Apply(v)
	if e := (*lock.Error)(nil); !errors.As(d.Err, &e) || !e.Suspect || len(e.Blocked) != 2 || !e.Blocked[0].Suspect || e.Blocked[1].Suspect ||
		!strings.Contains(e.Detail, `"h" holds a, which is suspect until an operator has looked at the work; "h" holds b.`) {
		t.Errorf("it is answered with %+v", d.Err)
	}
}
