package lock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// maxEvents is what one row of the store has room for.
const maxEvents = 4096

// TestALongQueueLapsesInPortions: no decision has too many events, and each says that the next one is due.
func TestALongQueueLapsesInPortions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := lock.Record{Name: "a"}
	const places = 4500
	for i := range int64(places) {
		r.Queue = append(r.Queue, &lock.Waiter{Place: i + 1, KeptUntil: now.Add(-time.Minute)})
	}
	r.Revision, r.ChangedAt = places, now.Add(-time.Hour)
	removed := int64(1)
	for decisions := 1; len(r.Queue) > 0; decisions++ {
		d := lock.Sweep{Locks: []string{"a"}}.Apply(lock.View{Now: now, Self: 1, Locks: []lock.Record{r}})
		if len(d.Events) == 0 || len(d.Events) > 1000 || decisions > 5 {
			t.Fatalf("decision %d has %d events", decisions, len(d.Events))
		}
		for _, e := range d.Events {
			if e.Kind != lock.Dequeued || e.Place != removed {
				t.Fatalf("got %v of place %d, want place %d to lapse", e.Kind, e.Place, removed)
			}
			removed++
		}
		if r = d.Locks[0]; len(r.Queue) > 0 && (d.Due.IsZero() || d.Due.After(now)) {
			t.Errorf("%d places are left, and the next decision is due at %v", len(r.Queue), d.Due)
		}
	}
}

// TestADecisionHasABoundedNumberOfEvents, also one in which everything happens: leases expire, places lapse, readers
// are granted the lock and revoked at once, and the next ones are granted it.
func TestADecisionHasABoundedNumberOfEvents(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, expired := range []int{0, 1, 500, 999} {
		r := lock.Record{Name: "a", Revision: 1, Token: 7, ChangedAt: now.Add(-time.Hour)}
		for i := range lock.MaxHolders {
			l := lock.Lease{Name: "a", Slot: i + 1, Mode: lock.Shared, Token: 7, TTL: time.Hour, ExpiresAt: now.Add(time.Hour)}
			l.ID[0], l.ID[1], l.ID[2] = 1, byte(i), byte(i>>8)
			if i < expired {
				l.ExpiresAt = now.Add(-time.Second)
			}
			r.Leases = append(r.Leases, l)
		}
		for i := range 6000 {
			w := &lock.Waiter{Place: int64(i + 1), Lease: lock.Lease{Name: "a", Mode: lock.Shared, TTL: time.Hour}, KeptUntil: now}
			w.Lease.ID[0], w.Lease.ID[1], w.Lease.ID[2] = 2, byte(i), byte(i>>8)
			if i%2 == 1 {
				w.Attachment, w.Replica, w.WaitUntil = lock.Attachment(i), 1, now.Add(time.Hour)
			}
			r.Queue = append(r.Queue, w)
		}
		token := lock.Token(7)
		v := lock.View{Now: now, Self: 1, Locks: []lock.Record{r}, Tokens: func() lock.Token { token++; return token }}
		commands := []lock.Command{
			lock.Sweep{Locks: []string{"a"}}, lock.Revoke{Name: "a", Token: 7, Reason: "r", SkipGrace: true},
			lock.Release{Locks: []string{"a"}, LeaseID: r.Leases[999].ID}, lock.Acquire{Locks: []lock.Member{{Name: "a", Mode: lock.Shared}}, LeaseID: lock.LeaseID{9}, TTL: time.Hour},
		}
		for _, cmd := range commands {
			t.Run(fmt.Sprintf("%d expired, %T", expired, cmd), func(t *testing.T) {
				if d := cmd.Apply(v); len(d.Events) > maxEvents {
					t.Errorf("%d events", len(d.Events))
				} else {
					t.Logf("%d events", len(d.Events))
				}
			})
		}
	}
}
