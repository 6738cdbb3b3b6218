package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A run is what its clients share.
type run struct {
	Options
	names *names
	lull  atomic.Pointer[lull] // the newest; nil before the first
	base  context.Context      // of the calls: it does not end with the run
	over  context.Context      // ends when no more turn is to begin
	end   context.CancelCauseFunc
	left  atomic.Int64 // how many calls are still to be made
}

// errDone ends a run that has made its calls.
var errDone = errors.New("there were enough calls")

// Run has clients use the services until the operations are made, the time is up or
// ctx ends, whichever comes first, and records what they ask and are answered. Then they
// release what they hold; it returns when the last call is answered or given up, and the
// subscribers have been told of all that, or have been stopped 15 seconds later. That
// ctx has ended is no error. An answer that nothing in the load asks for is one, and
// ends the run.
func Run(ctx context.Context, rec *verify.Recorder, o Options) (Stats, error) {
	o, err := o.resolve()
	if err != nil {
		return Stats{}, err
	}
	r := &run{Options: o, names: newNames(o), base: context.WithoutCancel(ctx)}
	r.over, r.end = context.WithCancelCause(ctx)
	defer r.end(nil)
	r.left.Store(int64(o.Operations))
	a := r.subscribe(rec)
	began := time.Now()
	if o.For > 0 {
		defer time.AfterFunc(o.For, func() { r.end(errDone) }).Stop()
	}
	clients := make([]*client, o.Clients)
	var wg sync.WaitGroup
	wg.Go(r.beginLulls)
	for i := range clients {
		clients[i] = r.client(i, rec)
		wg.Go(clients[i].takeTurns)
	}
	wg.Wait()
	stats := Stats{Took: time.Since(began)}
	a.stopAtEnd()
	for _, c := range clients {
		stats.add(c.stats)
	}
	stats.add(a.calls)
	stats.Subscribers = a.stats
	if unasked := (*unexpectedError)(nil); errors.As(context.Cause(r.over), &unasked) {
		return stats, unasked
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

// countCall notes that a call is made.
func (r *run) countCall() {
	if r.left.Add(-1) == 0 {
		r.end(errDone)
	}
}

// An unexpectedError is an answer that nothing in the load asks for.
type unexpectedError struct {
	verb verify.Verb
	via  string
	err  error
}

// Error says who was answered what.
func (e *unexpectedError) Error() string {
	return fmt.Sprintf("load: %s, via %s, was answered what nothing here asks for: %v", e.verb, e.via, e.err)
}

// Unwrap returns the answer.
func (e *unexpectedError) Unwrap() error { return e.err }

// checkAnswer ends the run unless the answer to such a call may be that.
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

// expectedErrors are what the calls of the load may be refused with.
var expectedErrors = map[verify.Verb][]lock.Code{
	verify.Acquire:     {lock.ErrHeld, lock.ErrLeaseLost},
	verify.Renew:       {lock.ErrLeaseLost},
	verify.Release:     {lock.ErrLeaseLost},
	verify.Revoke:      {lock.ErrTokenMismatch},
	verify.WriteFenced: {lock.ErrStaleToken, lock.ErrUnknownToken, lock.ErrVersionMismatch},
	verify.ReadFenced:  {lock.ErrNotFound},
}

// isLost is whether nobody knows what became of the call, or it is to be sent again.
func isLost(err error) bool {
	return errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrRateLimited)
}

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
