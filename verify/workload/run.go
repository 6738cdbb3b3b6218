package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A run is the state that all clients share.
type run struct {
	Options
	rec   *verify.Recorder
	names *names
	pairs pairs
	lull  atomic.Pointer[lull] // newest lull; nil before the first
	base  context.Context      // context of the calls, which outlasts the run
	over  context.Context      // ends when no further turn may begin
	end   context.CancelCauseFunc
	left  atomic.Int64 // calls still to be made
}

// errDone ends a run whose calls are made or whose time is up.
var errDone = errors.New("the run is complete")

// Run lets clients use the services until Operations are made, For has passed or ctx ends, and records
// their calls. The clients then release what they hold. Run returns when the last call is answered or
// cancelled and the subscribers have received all events, or 15 seconds later. The end of ctx is not
// an error. An answer that no call of the workload can expect ends the run and is returned.
func Run(ctx context.Context, rec *verify.Recorder, o Options) (Stats, error) {
	o, err := o.resolve()
	if err != nil {
		return Stats{}, err
	}
	r := &run{Options: o, rec: rec, names: newNames(o), base: context.WithoutCancel(ctx)}
	r.over, r.end = context.WithCancelCause(ctx)
	defer r.end(nil)
	r.left.Store(int64(o.Operations))
	a := r.subscribe(rec)
	began := time.Now()
	if o.For > 0 {
		defer time.AfterFunc(o.For, func() { r.end(errDone) }).Stop()
	}
	clients := make([]*client, o.Clients)
	var stats Stats
	if err := r.declareTree(&stats); err != nil {
		return Stats{}, err
	}
	operator := r.client(len(clients), rec)
	if err := operator.setFirstRule(); err != nil {
		return Stats{}, err
	}
	var wg sync.WaitGroup
	wg.Go(operator.changePolicy)
	wg.Go(r.beginLulls)
	for i := range clients {
		clients[i] = r.client(i, rec)
		wg.Go(clients[i].takeTurns)
	}
	revoker := r.client(len(clients)+1, rec)
	if r.Hold {
		wg.Go(revoker.revokeSuspects)
	}
	wg.Wait()
	stats.Took = time.Since(began)
	a.stopAtEnd()
	for _, c := range append(clients, operator, revoker) {
		stats.add(c.stats)
	}
	stats.add(a.calls)
	stats.Subscribers = a.stats
	if unexpected := (*unexpectedError)(nil); errors.As(context.Cause(r.over), &unexpected) {
		return stats, unexpected
	}
	return stats, nil
}

func (r *run) client(number int, rec *verify.Recorder) *client {
	c := &client{run: r, number: number}
	for _, s := range r.Services {
		c.services = append(c.services, rec.Client(s.Via, s.Locks))
	}
	return c
}

// declareTree declares the tree of the run, on behalf of an operator, and counts its calls.
func (r *run) declareTree(stats *Stats) error {
	if !r.Tree {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.over, r.RetryFor)
	defer cancel()
	for {
		s := r.Services[0]
		_, err := r.rec.Client(s.Via, s.Locks).DeclareTree(ctx, rootOf(r.Prefix))
		stats.count(verify.DeclareTree, err)
		switch {
		case err == nil:
			return nil
		case !isLost(err) || ctx.Err() != nil:
			return fmt.Errorf("workload: declaring a tree: %w", err)
		}
	}
}

// RemoveTree removes the tree that runs with the prefix have declared. Its locks must be free.
func RemoveTree(ctx context.Context, s paddock.Service, prefix string) error {
	return s.RemoveTree(ctx, rootOf(prefix))
}

// countCall counts a call, and ends the run with the last one.
func (r *run) countCall() {
	if r.left.Add(-1) == 0 {
		r.end(errDone)
	}
}

// An unexpectedError is an answer that no call of the workload can expect.
type unexpectedError struct {
	verb verify.Verb
	via  string
	err  error
}

// Error names the call and the answer.
func (e *unexpectedError) Error() string {
	return fmt.Sprintf("workload: unexpected answer to %s via %s: %v", e.verb, e.via, e.err)
}

// Unwrap returns the answer.
func (e *unexpectedError) Unwrap() error { return e.err }

// checkAnswer ends the run if the answer is not one that the call can expect.
func (r *run) checkAnswer(verb verify.Verb, via int, err error) {
	if err == nil || isLost(err) || errors.Is(err, lock.ErrTooManyWaiters) {
		return
	}
	for _, code := range expectedErrors[verb] {
		if errors.Is(err, code) {
			return
		}
	}
	r.end(&unexpectedError{verb, r.Services[via].Via, err})
}

// expectedErrors are the refusals that calls of the workload can expect.
var expectedErrors = map[verify.Verb][]lock.Code{
	verify.Acquire:      {lock.ErrHeld, lock.ErrFrozen, lock.ErrAlreadyDone, lock.ErrLeaseLost, lock.ErrSessionLost, lock.ErrDeadlock},
	verify.Renew:        {lock.ErrLeaseLost, lock.ErrLeaseInSet},
	verify.Release:      {lock.ErrLeaseLost, lock.ErrLeaseInSet},
	verify.Revoke:       {lock.ErrTokenMismatch},
	verify.WriteFenced:  {lock.ErrStaleToken, lock.ErrUnknownToken, lock.ErrVersionMismatch},
	verify.ReadFenced:   {lock.ErrNotFound},
	verify.OpenSession:  {lock.ErrSessionLost},
	verify.RenewSession: {lock.ErrSessionLost},
	verify.CloseSession: {lock.ErrSessionLost},
}

// isLost reports whether the outcome of the call is unknown or the call must be retried.
func isLost(err error) bool {
	return errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrUnavailable) ||
		errors.Is(err, lock.ErrRateLimited)
}

// freePollInterval is the time between two checks whether all locks are free.
const freePollInterval = 100 * time.Millisecond

// WaitUntilFree returns once all locks whose names begin with the prefix are free and without waiters:
// abandoned leases have expired and kept places have been dropped. It revokes leases that are suspect. If ctx ends first,
// it returns an error that names a lock which is not free.
func WaitUntilFree(ctx context.Context, s paddock.Service, prefix string) error {
	last := errors.New("no request was sent")
	for {
		busy, err := firstBusy(ctx, s, prefix)
		if err == nil && busy != nil {
			for _, r := range revocationsOf(*busy) {
				if _, failed := s.Revoke(ctx, r); !errors.Is(failed, lock.ErrTokenMismatch) { // it may have ended meanwhile
					err = cmp.Or(err, failed)
				}
			}
		}
		switch {
		case err == nil && busy == nil:
			return nil
		case err == nil:
			last = fmt.Errorf("%s is not free: it has %d leases and %d waiters, although all clients have stopped",
				busy.Name, len(busy.Leases), busy.Waiters)
		case ctx.Err() == nil:
			last = fmt.Errorf("cannot tell whether all locks under %s are free: %w", prefix, err)
		}
		select {
		case <-time.After(freePollInterval):
		case <-ctx.Done():
			return fmt.Errorf("workload: %w", last)
		}
	}
}

// revokeSuspects revokes leases of the run that are suspect, as an operator does, until the run is over.
func (c *client) revokeSuspects() {
	for c.over.Err() == nil {
		c.sleep(c.TTL / 2)
		page, err := c.Services[0].Locks.Locks(c.over, paddock.LockQuery{Prefix: c.Prefix + ":", State: lock.Suspect, Limit: paddock.MaxLimit})
		if err != nil {
			continue // a later turn finds them
		}
		for _, l := range page.Items {
			c.revokeSuspect(l)
		}
	}
}

// revokeSuspect revokes the leases of the lock that are suspect.
func (c *client) revokeSuspect(l lock.Lock) {
	for _, r := range revocationsOf(l) {
		_, _ = callWithRetries(c, callOptions{verify.Revoke, 0, 0, never}, // the answer is recorded
			func(ctx context.Context, s paddock.Service) (lock.Lock, error) { return s.Revoke(ctx, r) })
	}
}

// revocationsOf returns the revocations of the leases of the lock that are suspect.
func revocationsOf(l lock.Lock) (all []lock.Revoke) {
	for _, h := range l.Leases {
		if h.Suspect {
			all = append(all, lock.Revoke{Name: l.Name, Token: h.Token, Slot: &h.Slot, Reason: fmt.Sprintf("token %d in slot %d is suspect", h.Token, h.Slot)})
		}
	}
	return all
}

// firstBusy returns a lock under the prefix that is not free or has waiters, if there is one. A lock with leases or
// waiters of its own comes before those above it in a tree, which become free with it.
func firstBusy(ctx context.Context, s paddock.Service, prefix string) (above *lock.Lock, err error) {
	q := paddock.LockQuery{Prefix: prefix, Limit: paddock.MaxLimit}
	for {
		page, err := s.Locks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, l := range page.Items {
			switch {
			case len(l.Leases)+l.Waiters > 0:
				return &l, nil
			case above == nil && (l.State != lock.Free || len(l.Below) > 0):
				above = &l
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return above, nil
		}
	}
}
