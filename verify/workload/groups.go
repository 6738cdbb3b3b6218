package workload

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/paddock-lock/paddock/verify"
)

// RunGroups is Run for several prefixes at once, each with its share of the clients, locks and operations. Prefixes of
// different groups (names up to the first colon) may be in different cells. Sets, sessions and trees have locks of one
// prefix. An answer that no call can expect ends all of it.
func RunGroups(ctx context.Context, rec *verify.Recorder, o Options, prefixes []string) (Stats, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	n := len(prefixes)
	all, errs := make([]Stats, n), make([]error, n)
	var runs sync.WaitGroup
	for i, prefix := range prefixes {
		one := o
		one.Prefix, one.Seed = prefix, o.Seed+uint64(i)
		one.Clients, one.Operations = share(cmp.Or(o.Clients, DefaultClients), i, n), share(o.Operations, i, n)
		one.Locks = share(cmp.Or(o.Locks, DefaultLocks), i, n)
		runs.Go(func() {
			if all[i], errs[i] = Run(ctx, rec, one); errs[i] != nil {
				end(errs[i])
			}
		})
	}
	runs.Wait()
	var stats Stats
	for _, s := range all {
		stats.add(s)
		stats.Took = max(stats.Took, s.Took)
		stats.Subscribers.add(s.Subscribers)
	}
	return stats, errors.Join(errs...)
}

// share returns the nth of equal shares of the total, at least 1 if there is anything to share.
func share(total, n, of int) int {
	if total == 0 {
		return 0
	}
	return max(1, total*(n+1)/of-total*n/of)
}
