package paddock

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// maxStaleSearch is how many events FindHold reads, and up to a page more.
const maxStaleSearch = 1000

// FindHold returns the lease that had the token of the report, from about the last thousand events that began or ended
// a lease of the lock. It returns the zero Hold if the lease is not among them. Shared leases have one token: without
// a slot, it is the one that was granted last.
func FindHold(ctx context.Context, s Service, r lock.ReportStale) (lock.Hold, error) {
	h, _, err := findHold(ctx, s, r)
	return h, err
}

// findHold is FindHold. visible is false if the lease's end, or even its grant, may be in events that readers do not
// see yet, because an earlier transaction is open.
func findHold(ctx context.Context, s Service, r lock.ReportStale) (h lock.Hold, visible bool, err error) {
	q := EventQuery{Names: []string{r.Name}, Kinds: holdKinds, Descending: true, Limit: DefaultLimit}
	var found []lock.Event // the newest first
	newest := lock.Token(0)
	for read, granted := 0, false; !granted && read < maxStaleSearch; {
		page, err := s.Events(ctx, q)
		if err != nil {
			return lock.Hold{}, false, err
		}
		for _, e := range page.Items {
			newest = max(newest, e.Token)
			if !granted && e.Token == r.Token && (r.Slot == nil || e.Slots.Include(e.Slot, *r.Slot)) {
				found, granted = append(found, e), e.Kind == lock.Granted
			}
		}
		if page.Next == "" {
			break
		}
		read += len(page.Items)
		q.Cursor, q.Limit = page.Next, MaxLimit
	}
	if len(found) == 0 {
		return lock.Hold{}, newest == 0 || newest > r.Token, nil
	}
	slices.Reverse(found)
	holds := TimelineOf(found).Holds
	h = holds[len(holds)-1]
	return h, !h.EndedAt.IsZero(), nil
}

// How often Record looks for events that are not visible yet, and how long it waits in between.
const (
	holdAttempts = 10
	holdPause    = 30 * time.Millisecond
)

// awaitHold is FindHold once the events are visible, or not after a while.
func awaitHold(ctx context.Context, s Service, r lock.ReportStale) (h lock.Hold, err error) {
	for n := range holdAttempts {
		visible := false
		if h, visible, err = findHold(ctx, s, r); err != nil || visible || n == holdAttempts-1 {
			break
		}
		select {
		case <-time.After(holdPause):
		case <-ctx.Done():
			return h, nil
		}
	}
	return h, err
}

// Limits of the Refused events of one replica, so that a flood of stale writes does not flood the history.
const (
	// StaleReportInterval is the least time between two events for the same name, token and slot.
	StaleReportInterval = time.Minute
	// MaxStaleReports is how many events there are at most in a StaleReportInterval.
	MaxStaleReports = 600
)

// StaleReports applies the limits. The zero value is ready for use, by several goroutines at once.
type StaleReports struct {
	mu       sync.Mutex
	admitted map[staleReport]time.Time // in the last StaleReportInterval
}

// A staleReport identifies reports that are the same.
type staleReport struct {
	name  string
	token lock.Token
	slot  int // -1: unknown
}

func staleReportOf(r lock.ReportStale) staleReport {
	slot := -1
	if r.Slot != nil {
		slot = *r.Slot
	}
	return staleReport{r.Name, r.Token, slot}
}

// Admit reports whether r may be recorded at now. If it was not recorded after all, call Forget.
func (s *StaleReports) Admit(r lock.ReportStale, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.admitted, func(_ staleReport, at time.Time) bool { return now.Sub(at) >= StaleReportInterval })
	if _, again := s.admitted[staleReportOf(r)]; again || len(s.admitted) >= MaxStaleReports {
		return false
	}
	if s.admitted == nil {
		s.admitted = map[staleReport]time.Time{}
	}
	s.admitted[staleReportOf(r)] = now
	return true
}

// Forget undoes Admit.
func (s *StaleReports) Forget(r lock.ReportStale) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.admitted, staleReportOf(r))
}

// Record records r: it finds the lease that had the token, and passes the report to decide, which applies it to the
// lock. It reports whether there is an event. Services implement ReportStale with it.
func (s *StaleReports) Record(
	ctx context.Context, r lock.ReportStale, now time.Time, history Service, decide func(context.Context, lock.Command) error,
) (bool, error) {
	r, err := r.Resolve()
	if err != nil || !s.Admit(r, now) {
		return false, err
	}
	if r.Lease, err = awaitHold(ctx, history, r); err == nil {
		err = decide(ctx, r)
	}
	if err != nil {
		s.Forget(r)
	}
	return err == nil, err
}
