package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// freePollInterval is how long to wait before looking again whether all is free.
const freePollInterval = 100 * time.Millisecond

// WaitUntilFree returns once nobody holds, or waits for, any lock whose name begins with the
// prefix: leases that were deserted have ended, places are not kept any more. If ctx
// ends before, it returns an error that names a lock which is not free.
func WaitUntilFree(ctx context.Context, s lock.Service, prefix string) error {
	last := errors.New("nobody was asked")
	for {
		busy, err := firstBusy(ctx, s, prefix)
		switch {
		case err == nil && busy == nil:
			return nil
		case err == nil:
			last = fmt.Errorf("%s is not free: %d hold it and %d wait, although all clients have left", busy.Name, len(busy.Leases), busy.Waiters)
		case ctx.Err() == nil:
			last = fmt.Errorf("whether all locks under %s are free is not known: %w", prefix, err)
		}
		select {
		case <-time.After(freePollInterval):
		case <-ctx.Done():
			return fmt.Errorf("load: %w", last)
		}
	}
}

// firstBusy returns a lock that is not free, if there is one.
func firstBusy(ctx context.Context, s lock.Service, prefix string) (*lock.Lock, error) {
	q := lock.LockQuery{Prefix: prefix, Limit: lock.MaxLimit}
	for {
		page, err := s.Locks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, l := range page.Items {
			if l.State != lock.Free || l.Waiters > 0 {
				return &l, nil
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil, nil
		}
	}
}
