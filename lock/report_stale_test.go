package lock_test

import (
	"errors"
	"strings"
	"testing"
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
