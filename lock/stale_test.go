package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

func report(token lock.Token, slot *int) lock.ReportStale {
	return lock.ReportStale{Name: name, Token: token, Slot: slot, Where: "table invoices"}
}

// TestStaleReportHasLatenessAndHolder checks the event of a report, in each state of the lock.
func TestStaleReportHasLatenessAndHolder(t *testing.T) {
	t.Parallel()
	late := report(1, nil)
	late.Lease = lock.Hold{Holder: "the first", Mode: lock.Exclusive, Token: 1, EndedAt: t0.Add(10 * time.Second)}
	unknown := report(1, nil)
	permit := report(1, new(2))
	permit.Lease = lock.Hold{Holder: "a permit", Mode: lock.Permit, Slot: 2, Token: 1, EndedAt: t0.Add(time.Hour)}
	for name, c := range map[string]struct {
		next   byte // the lease that holds the lock; zero: none
		report lock.ReportStale
		want   lock.Event
	}{
		"another client holds the lock": {2, late, lock.Event{
			Mode: lock.Exclusive, Holder: "the first", Token: 1, Newest: 2, Late: 20 * time.Second, HeldBy: "worker",
		}},
		"no client holds the lock": {0, late, lock.Event{
			Mode: lock.Exclusive, Holder: "the first", Token: 1, Newest: 1, Late: 20 * time.Second,
		}},
		"the lease is not in the history": {2, unknown, lock.Event{
			Mode: lock.Exclusive, Token: 1, Newest: 2, HeldBy: "worker",
		}},
		"a permit, with an end after the lock's time": {2, permit, lock.Event{
			Slot: 2, Mode: lock.Permit, Holder: "a permit", Token: 1, Newest: 2, HeldBy: "worker",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newModel(t)
			w.must(acquire(1))
			w.advance(30 * time.Second)
			w.must(lock.Sweep{Locks: []string{w.record.Name}})
			if c.next != 0 {
				w.must(acquire(c.next))
			}
			before := w.record
			d := w.must(c.report)
			c.want.Kind, c.want.Name, c.want.At, c.want.Revision = lock.Refused, before.Name, w.now, before.Revision+1
			c.want.Reason = "table invoices"
			if diff := cmp.Diff([]lock.Event{c.want}, d.Events); diff != "" {
				t.Errorf("other events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStaleReportOfATokenThatIsNotStaleIsRefused(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	if e := w.refused(report(1, nil), lock.ErrUnknownToken); e.Newest != 0 {
		t.Errorf("refused with %+v", e)
	}
	w.must(acquire(1, withGrace))
	if e := w.refused(report(1, nil), lock.ErrTokenMismatch); e.Token != 1 || e.Newest != 1 || !lock.NotStale(e) {
		t.Errorf("refused with %+v", e)
	}
	w.advance(10 * time.Second) // in its grace the lease may still be renewed
	w.refused(report(1, nil), lock.ErrTokenMismatch)
	w.refused(report(2, nil), lock.ErrUnknownToken)
	w.must(report(1, new(3))) // no lease is in that slot
	w.must(revoke(1, nil))
	w.must(report(1, nil))
	for _, r := range []lock.ReportStale{
		{Name: "a/b", Token: 1}, {Name: name}, {Name: name, Token: 1, Slot: new(-1)},
		{Name: name, Token: 1, Where: strings.Repeat("w", lock.MaxWhereLength+1)}, {Name: name, Token: 1, Where: "a\nb"},
	} {
		if _, err := r.Resolve(); !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// TestStaleReportsAreLimited checks that each token is admitted once in an interval, and so many tokens in total.
func TestStaleReportsAreLimited(t *testing.T) {
	t.Parallel()
	var s lock.StaleReports
	admitted := func(n int, now time.Time) (count int) {
		for i := range n {
			for range 2 {
				if s.Admit(report(lock.Token(i/4+1), []*int{nil, new(0), new(1), new(2)}[i%4]), now) {
					count++
				}
			}
		}
		return count
	}
	for _, c := range []struct {
		after time.Duration
		n     int
		want  int
	}{
		{0, 3, 3},
		{lock.StaleReportInterval - 1, 5, 2},
		{lock.StaleReportInterval, 5, 3},
		{lock.StaleReportInterval, 2_000, lock.MaxStaleReports - 5},
		{3 * lock.StaleReportInterval, 2_000, lock.MaxStaleReports},
	} {
		if got := admitted(c.n, t0.Add(c.after)); got != c.want {
			t.Errorf("after %v, %d of %d tokens are admitted, want %d", c.after, got, c.n, c.want)
		}
	}
	s.Forget(report(1, nil))
	if !s.Admit(report(1, nil), t0.Add(3*lock.StaleReportInterval)) {
		t.Error("a forgotten report is not admitted again")
	}
}

// TestFindHoldFindsTheLeaseOfAToken in the events of a fake service.
func TestFindHoldFindsTheLeaseOfAToken(t *testing.T) {
	t.Parallel()
	events := []lock.Event{
		{Kind: lock.Granted, Slot: 1, Mode: lock.Shared, Holder: "a", Token: 5}, {Kind: lock.Granted, Slot: 2, Mode: lock.Shared, Holder: "b", Token: 5},
		{Kind: lock.Expired, Slot: 1, Mode: lock.Shared, Holder: "a", Token: 5}, {Kind: lock.Released, Slot: 2, Mode: lock.Shared, Holder: "b", Token: 5},
		{Kind: lock.Granted, Mode: lock.Exclusive, Holder: "c", Token: 6}, {Kind: lock.Expired, Mode: lock.Exclusive, Holder: "c", Token: 6},
	}
	for i := range events {
		events[i].ID, events[i].Name, events[i].At = int64(i+1), name, at(i)
	}
	for _, c := range []struct {
		r    lock.ReportStale
		want lock.Hold
	}{
		{report(6, nil), lock.Hold{Mode: lock.Exclusive, Holder: "c", Token: 6, GrantedAt: at(4), EndedAt: at(5), End: lock.Expired}},
		{report(5, nil), lock.Hold{Slot: 2, Mode: lock.Shared, Holder: "b", Token: 5, GrantedAt: at(1), EndedAt: at(3), End: lock.Released}},
		{report(5, new(1)), lock.Hold{Slot: 1, Mode: lock.Shared, Holder: "a", Token: 5, GrantedAt: at(0), EndedAt: at(2), End: lock.Expired}},
		{report(5, new(0)), lock.Hold{}},
		{report(4, nil), lock.Hold{}},
	} {
		t.Run(fmt.Sprint(c.r.Token, c.r.Slot != nil), func(t *testing.T) {
			t.Parallel()
			got, err := lock.FindHold(t.Context(), fixedEvents{events: events}, c.r)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v, another lease (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A fixedEvents is a service with these events, oldest first. It returns them in pages of one.
type fixedEvents struct {
	lock.Service
	events []lock.Event
}

func (s fixedEvents) Events(_ context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	next := len(s.events)
	if q.Cursor != "" {
		next, _ = strconv.Atoi(q.Cursor)
	}
	if next == 0 {
		return lock.Page[lock.Event]{}, nil
	}
	return lock.Page[lock.Event]{Items: s.events[next-1 : next], Next: strconv.Itoa(next - 1)}, nil
}

func TestFindHoldReadsOnlySoManyEvents(t *testing.T) {
	t.Parallel()
	p := &longPast{}
	if h, err := lock.FindHold(t.Context(), p, report(1, nil)); h != (lock.Hold{}) || err != nil {
		t.Errorf("found %+v, %v", h, err)
	}
	if p.read < 1000 || p.read > 1000+lock.MaxLimit {
		t.Errorf("%d events were read", p.read)
	}
}

// lateEvents are events of which all but the first are visible a while after began only.
type lateEvents struct {
	fixedEvents
	began time.Time
}

func (s lateEvents) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	if time.Since(s.began) < 100*time.Millisecond {
		s.events = s.events[:1]
	}
	return s.fixedEvents.Events(ctx, q)
}

// TestAReportWaitsForEventsThatAreNotVisibleYet: an earlier transaction is open, so readers do not see the end of the
// lease.
func TestAReportWaitsForEventsThatAreNotVisibleYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := []lock.Event{
			{ID: 1, Name: name, At: at(0), Kind: lock.Granted, Mode: lock.Exclusive, Holder: "a", Token: 5},
			{ID: 2, Name: name, At: at(1), Kind: lock.Expired, Mode: lock.Exclusive, Holder: "a", Token: 5},
		}
		var decided lock.ReportStale
		recorded, err := new(lock.StaleReports).Record(t.Context(), report(5, nil), time.Now(), lateEvents{fixedEvents{events: events}, time.Now()},
			func(_ context.Context, c lock.Command) error {
				decided = c.(lock.ReportStale)
				return nil
			})
		if err != nil || !recorded || decided.Lease.Holder != "a" || !decided.Lease.EndedAt.Equal(at(1)) {
			t.Errorf("recorded %t with %+v, %v", recorded, decided.Lease, err)
		}
	})
}
