package verify

import (
	"context"
	"fmt"

	"github.com/paddock-lock/paddock/lock"
)

// catchUp is for how long a page of events is waited for while it is known that
// there must be more.
const catchUp = lock.MaxWait / 10

// Collect returns all events of the locks whose names begin with prefix, oldest
// first. A transaction that is still open hides what was committed after it began,
// so Collect reads until each lock's events lead to the revision that the lock had
// when it began, or until ctx ends. Have the clients be done before.
func Collect(ctx context.Context, s lock.Service, prefix string) ([]lock.Event, error) {
	want, err := revisions(ctx, s, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the locks: %w", err)
	}
	events := []lock.Event{}
	for q := (lock.EventQuery{Prefix: prefix, Limit: lock.MaxLimit}); ; {
		page, err := s.Events(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if page.Gap {
			return nil, fmt.Errorf("events after %s are not kept any longer; collect sooner, or have the service keep events for longer", q.Cursor)
		}
		for _, e := range page.Items {
			if e.Revision >= want[e.Name] {
				delete(want, e.Name)
			}
		}
		events, q.Cursor, q.Wait = append(events, page.Items...), page.Next, 0
		switch {
		case len(page.Items) > 0:
		case len(want) == 0:
			return events, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("the newest events of %d locks do not come to light, as behind a transaction that is still open: %w",
				len(want), context.Cause(ctx))
		default:
			q.Wait = catchUp
		}
	}
}

// revisions returns the revision that each lock has, of those that have changed.
func revisions(ctx context.Context, s lock.Service, prefix string) (map[string]int64, error) {
	want := map[string]int64{}
	for q := (lock.LockQuery{Prefix: prefix, Limit: lock.MaxLimit}); ; {
		page, err := s.Locks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, l := range page.Items {
			if l.Revision > 0 {
				want[l.Name] = l.Revision
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return want, nil
		}
	}
}
