package sim

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// A scenario is one of the primitives that package guard offers.
type scenario struct {
	lock    string // the lock's name
	mode    lock.Mode
	do      guardFunc
	others  []lock.Member // further locks that are acquired together with it, all or none
	session bool          // keeps the leases alive, see inSession
	permits int           // of the lock, in mode Permit; zero: one
	once    bool          // the work is done once in each period
	stays   bool          // the lease does not end by itself
}

// A guardFunc does work under a guard.
type guardFunc func(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error

// scenarios lists all scenarios. The first is the simplest.
var scenarios = []scenario{
	{lock: ledger, mode: lock.Exclusive, do: byDo},
	{lock: ledger, mode: lock.Exclusive, do: byAcquire},
	{lock: ledger, mode: lock.Exclusive, do: byElection},
	{lock: ledger, mode: lock.Exclusive, do: byWriting},
	{lock: ledger, mode: lock.Shared, do: byReading},
	{lock: gates, mode: lock.Permit, do: byPermit},
	{lock: ledger, mode: lock.Exclusive, do: byDo, others: aPermit},
	{lock: ledger, mode: lock.Shared, do: byReading, others: aPermit},
	{lock: ledger, mode: lock.Exclusive, do: byAcquire, session: true},
	{lock: gates, mode: lock.Permit, do: byPermit, session: true},
	{lock: ledger, mode: lock.Exclusive, do: byDo, others: aPermit, session: true},
	{lock: page, mode: lock.Exclusive, do: byPage},
	{lock: page, mode: lock.Exclusive, do: byPage, others: aPermit},
	{lock: page, mode: lock.Exclusive, do: byPage, session: true},
	{lock: gates, mode: lock.Permit, do: byPermit, permits: 2},
	{lock: report, mode: lock.Exclusive, do: byOnce, once: true},
	{lock: state, mode: lock.Exclusive, do: byStaying, stays: true},
}

// aPermit is a permit that is acquired together with another lock. How many there are says a rule.
var aPermit = []lock.Member{{Name: gates, Mode: lock.Permit}}

func byDo(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	return guard.Do(ctx, locks, ledger, o, func(_ context.Context, l *guard.Lease) error { return work(l) })
}

func byPage(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	return guard.Do(ctx, locks, page, o, func(_ context.Context, l *guard.Lease) error { return work(l) })
}

func byAcquire(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	l, err := guard.Acquire(ctx, locks, ledger, o)
	if err != nil {
		return err
	}
	return errors.Join(work(l), l.Release(ctx))
}

func byElection(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	term, err := guard.NewElection(locks, ledger, o).Campaign(ctx, o.Holder)
	if err != nil {
		return err
	}
	return errors.Join(work(term.Lease), term.Resign(ctx))
}

func byWriting(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	return guard.NewRWLock(locks, ledger, o).DoWrite(ctx, func(_ context.Context, l *guard.Lease) error { return work(l) })
}

func byReading(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	return guard.NewRWLock(locks, ledger, o).DoRead(ctx, func(_ context.Context, l *guard.Lease) error { return work(l) })
}

func byPermit(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	return guard.NewSemaphore(locks, gates, 0, o).Do(ctx, func(_ context.Context, l *guard.Lease) error { return work(l) })
}

// period is how long work that is done once counts as done.
func period(ttl time.Duration) time.Duration { return 2 * ttl }

func byOnce(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	_, err := guard.Once(ctx, locks, report, lock.Closing{For: period(o.TTL)}, o, func(_ context.Context, l *guard.Lease) error { return work(l) })
	return err
}

func byStaying(ctx context.Context, locks paddock.Service, o guard.Options, work func(*guard.Lease) error) error {
	o.Stays = true
	return guard.Do(ctx, locks, state, o, func(_ context.Context, l *guard.Lease) error { return work(l) })
}
