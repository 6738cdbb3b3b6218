package paddock_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func TestStaleReportsAreLimited(t *testing.T) {
	t.Parallel()
	var s paddock.StaleReports
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
		{paddock.StaleReportInterval - 1, 5, 2},
		{paddock.StaleReportInterval, 5, 3},
		{paddock.StaleReportInterval, 2_000, paddock.MaxStaleReports - 5},
		{3 * paddock.StaleReportInterval, 2_000, paddock.MaxStaleReports},
	} {
		if got := admitted(c.n, t0.Add(c.after)); got != c.want {
			t.Errorf("after %v, %d of %d tokens are admitted, want %d", c.after, got, c.n, c.want)
		}
	}
	s.Forget(report(1, nil))
	if !s.Admit(report(1, nil), t0.Add(3*paddock.StaleReportInterval)) {
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
			got, err := paddock.FindHold(t.Context(), fixedEvents{events: events}, c.r)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v, another lease (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A fixedEvents is a service with these events, oldest first. It returns them in pages of one.
type fixedEvents struct {
	paddock.Service
	events []lock.Event
}

func (s fixedEvents) Events(_ context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	next := len(s.events)
	if q.Cursor != "" {
		next, _ = strconv.Atoi(q.Cursor)
	}
	if next == 0 {
		return paddock.Page[lock.Event]{}, nil
	}
	return paddock.Page[lock.Event]{Items: s.events[next-1 : next], Next: strconv.Itoa(next - 1)}, nil
}

func TestFindHoldReadsOnlySoManyEvents(t *testing.T) {
	t.Parallel()
	p := &longPast{}
	if h, err := paddock.FindHold(t.Context(), p, report(1, nil)); h != (lock.Hold{}) || err != nil {
		t.Errorf("found %+v, %v", h, err)
	}
	if p.read < 1000 || p.read > 1000+paddock.MaxLimit {
		t.Errorf("%d events were read", p.read)
	}
}

// lateEvents are events of which all but the first are visible a while after began only.
type lateEvents struct {
	fixedEvents
	began time.Time
}

func (s lateEvents) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
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
		recorded, err := new(paddock.StaleReports).Record(t.Context(), report(5, nil), time.Now(), lateEvents{fixedEvents{events: events}, time.Now()},
			func(_ context.Context, c lock.Command) error {
				decided = c.(lock.ReportStale)
				return nil
			})
		if err != nil || !recorded || decided.Lease.Holder != "a" || !decided.Lease.EndedAt.Equal(at(1)) {
			t.Errorf("recorded %t with %+v, %v", recorded, decided.Lease, err)
		}
	})
}
