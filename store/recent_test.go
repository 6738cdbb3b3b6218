package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// here is the replica that remembers.
const here lock.Replica = 7

// TestRecentsAreBounded: those not remembered again for longest go first.
func TestRecentsAreBounded(t *testing.T) {
	t.Parallel()
	r := &recents{young: make(map[string]recent)}
	r.put(lock.Record{Name: "often"}, anchor{version: 1}, here)
	for i := range 2 * maxRecent {
		r.put(lock.Record{Name: fmt.Sprint(i)}, anchor{version: uint32(i)}, here)
		if i%1000 == 0 {
			r.put(lock.Record{Name: "often"}, anchor{version: uint32(i)}, here)
		}
		if n := len(r.young) + len(r.old); n > maxRecent {
			t.Fatalf("%d locks are remembered", n)
		}
	}
	for name, want := range map[string]bool{"often": true, fmt.Sprint(2*maxRecent - 1): true, fmt.Sprint(2*maxRecent - maxRecent/2): true, "0": false} {
		if _, ok := r.get(name); ok != want {
			t.Errorf("%s is remembered: %t", name, ok)
		}
	}
}

func TestRecentsGoByTheNewest(t *testing.T) {
	t.Parallel()
	r := &recents{young: make(map[string]recent)}
	r.put(lock.Record{Name: "a"}, anchor{version: 1}, here)
	r.young, r.old = make(map[string]recent), r.young
	r.put(lock.Record{Name: "a"}, anchor{version: 2}, here)
	if l, ok := r.get("a"); !ok || l.version != 2 {
		t.Errorf("remembered as of %d", l.version)
	}
	r.put(lock.Record{Name: "a", Capacity: 2}, anchor{version: 3}, here)
	if _, ok := r.get("a"); ok {
		t.Error("what was before permits were out is remembered")
	}
	r.end()
	r.note(&tx{locks: map[string]lock.Record{"a": {Name: "a"}}})
	if _, ok := r.get("a"); ok || recentsHave(r) > 0 {
		t.Error("something is remembered after the end")
	}
}

func recentsHave(r *recents) int { return len(r.young) + len(r.old) }

func TestWhatIsRemembered(t *testing.T) {
	t.Parallel()
	exclusive := lock.Lease{Mode: lock.Exclusive, Token: 3, TTL: time.Second}
	shared, permit, unclaimed, older, fine := exclusive, exclusive, exclusive, exclusive, exclusive
	shared.Mode, permit.Mode, unclaimed.ClaimDeadline, older.Token = lock.Shared, lock.Permit, time.Now(), 2
	fine.MaxHold = time.Second + 1
	long, short, revoked := exclusive, exclusive, exclusive
	revoked.TTL = 0
	long.Metadata, short.Metadata = make([]byte, maxRecentMetadata+1), make([]byte, maxRecentMetadata)
	for name, c := range map[string]struct {
		state lock.Record
		want  bool
	}{
		"free":                     {lock.Record{}, true},
		"held":                     {lock.Record{Token: 3, Leases: []lock.Lease{exclusive}}, true},
		"revoked, in its grace":    {lock.Record{Token: 3, Leases: []lock.Lease{revoked}}, false},
		"shared":                   {lock.Record{Token: 3, Leases: []lock.Lease{shared}}, false},
		"a permit is out":          {lock.Record{Token: 3, Capacity: 2, Leases: []lock.Lease{permit}}, false},
		"two leases":               {lock.Record{Token: 3, Leases: []lock.Lease{exclusive, exclusive}}, false},
		"waited for here":          {lock.Record{Queue: []*lock.Waiter{{Replica: here}, {}}}, true},
		"waited for elsewhere":     {lock.Record{Queue: []*lock.Waiter{{Replica: here}, {Replica: 8}}}, false},
		"a waiter has an offer":    {lock.Record{Queue: []*lock.Waiter{{Replica: here, GrantedUnclaimed: true}}}, false},
		"much metadata":            {lock.Record{Token: 3, Leases: []lock.Lease{long}}, false},
		"the latest possible end":  {lock.Record{Token: 3, Leases: []lock.Lease{short}}, true},
		"waits with much metadata": {lock.Record{Queue: []*lock.Waiter{{Replica: here, Lease: long}}}, false},
		"finer than the table":     {lock.Record{Token: 3, Leases: []lock.Lease{fine}}, false},
		"waits for what is finer":  {lock.Record{Queue: []*lock.Waiter{{Replica: here, Lease: fine}}}, false},
		"the grant is unclaimed":   {lock.Record{Token: 3, Leases: []lock.Lease{unclaimed}}, false},
		"not by the newest token":  {lock.Record{Token: 3, Leases: []lock.Lease{older}}, false},
	} {
		if got := memorable(c.state, here); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestMemoryIsAsPreciseAsTheTable: else a lease could be renewed when for all others it is over.
func TestMemoryIsAsPreciseAsTheTable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := lock.Lease{TTL: time.Second, Grace: time.Second, MaxHold: time.Hour, AcquiredAt: at, ExpiresAt: at.Add(time.Microsecond)}
	if !exact(&l) {
		t.Error("whole milliseconds are too fine")
	}
	for name, finer := range map[string]func(*lock.Lease){
		"ttl":   func(l *lock.Lease) { l.TTL++ },
		"grace": func(l *lock.Lease) { l.Grace += 500_000 },
		"max":   func(l *lock.Lease) { l.MaxHold-- },
		"end":   func(l *lock.Lease) { l.ExpiresAt = l.ExpiresAt.Add(1) },
	} {
		m := l
		if finer(&m); exact(&m) {
			t.Errorf("%s: the table has that", name)
		}
	}
}

func TestAReadingTellsNoMoreThanTheDatabaseShows(t *testing.T) {
	t.Parallel()
	shown, here := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Now()
	r := reading{shown: shown, after: here, before: here.Add(time.Millisecond)}
	for name, c := range map[string]struct{ since, want time.Duration }{
		"before it was back":     {-time.Second, 0},
		"just then":              {time.Millisecond, 0},
		"later":                  {time.Second + time.Millisecond, time.Second},
		"in whole microseconds":  {time.Millisecond + 1999, time.Microsecond},
		"much later, to the dot": {time.Hour + time.Millisecond, time.Hour},
	} {
		if got := r.at(here.Add(c.since)); !got.Equal(shown.Add(c.want)) {
			t.Errorf("%s: %v after it was read", name, got.Sub(shown))
		}
	}
}

func TestTheNarrowerReadingIsTheBetter(t *testing.T) {
	t.Parallel()
	here := time.Now()
	read := func(at, width time.Duration) reading {
		return reading{after: here.Add(at - width), before: here.Add(at)}
	}
	old := read(0, time.Millisecond)
	if old.width() != time.Millisecond {
		t.Errorf("it is %v wide", old.width())
	}
	for name, c := range map[string]struct {
		newer reading
		want  bool
	}{
		"narrower":                          {read(time.Second, time.Microsecond), true},
		"as wide":                           {read(0, time.Millisecond), true},
		"wider":                             {read(time.Millisecond, 2*time.Millisecond), false},
		"wider by what clocks may go apart": {read(time.Second, 2*time.Millisecond), true},
		"wider by more than that":           {read(time.Second, 2*time.Millisecond+1), false},
	} {
		if got := old.better(c.newer) == c.newer; got != c.want {
			t.Errorf("%s: taken is %t", name, got)
		}
	}
	var none reading
	if got := none.better(old); got != old {
		t.Error("none is better than one")
	}
}
