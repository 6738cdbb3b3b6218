package workload_test

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// A fake is an in-memory lock service with a latency of a millisecond and configurable faults.
type fake struct {
	grantsHeld   bool // grants held locks
	stale        bool // always grants the same token
	neverAnswers bool // never answers
	refusesRenew bool // refuses renewals
	noBatches    bool // does not support batches
	selfRenewing bool // its clients are system.SelfRenewing

	mu     sync.Mutex
	freed  *sync.Cond
	held   map[string]bool
	tokens int64
	closed int // number of closed clients
}

func (f *fake) Name() string  { return "fake" }
func (f *fake) Title() string { return "Fake" }

func (f *fake) Start(context.Context, string) error { return nil }
func (f *fake) Stop() error                         { return nil }
func (f *fake) Processes() []system.Process         { return nil }
func (f *fake) Filled() int                         { return 1000 }

func (f *fake) Client(context.Context) (system.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held, f.freed = map[string]bool{}, sync.NewCond(&f.mu)
	}
	if f.noBatches {
		return struct{ system.Client }{fakeClient{f}}, nil
	}
	if f.selfRenewing {
		return newFakeKeeper(f), nil
	}
	return fakeClient{f}, nil
}

// A fakeKeeper reports a renewal of a millisecond every 100 ms.
type fakeKeeper struct {
	fakeClient
	renewed chan time.Duration
	closed  chan struct{}
}

func newFakeKeeper(f *fake) fakeKeeper {
	k := fakeKeeper{fakeClient{f}, make(chan time.Duration), make(chan struct{})}
	go func() {
		for {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-k.closed:
				return
			}
			select {
			case k.renewed <- time.Millisecond:
			case <-k.closed:
				return
			}
		}
	}()
	return k
}

func (k fakeKeeper) Renewed() <-chan time.Duration { return k.renewed }

func (k fakeKeeper) Close() error {
	close(k.closed)
	return k.fakeClient.Close()
}

type fakeClient struct{ *fake }

func (c fakeClient) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c fakeClient) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	time.Sleep(time.Millisecond)
	if c.neverAnswers {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer context.AfterFunc(ctx, c.freed.Broadcast)()
	for c.held[name] && !c.grantsHeld {
		switch {
		case !wait:
			return nil, system.ErrHeld
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		c.freed.Wait()
	}
	c.held[name] = true
	if !c.stale {
		c.tokens++
	}
	return fakeLease{c.fake, name, c.tokens + 1}, nil
}

func (c fakeClient) AcquireAll(ctx context.Context, names []string) (leases []system.Lease, err error) {
	for _, name := range names {
		lease, err := c.Acquire(ctx, name, false)
		if err != nil {
			return nil, err
		}
		leases = append(leases, lease)
	}
	return leases, nil
}

func (c fakeClient) ReleaseAll(ctx context.Context, leases []system.Lease) error {
	for _, lease := range leases {
		if err := lease.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

type fakeLease struct {
	*fake
	name  string
	token int64
}

func (l fakeLease) Token() int64 { return l.token }

func (l fakeLease) Renew(context.Context) error {
	time.Sleep(time.Millisecond)
	if l.refusesRenew {
		return system.ErrUnsupported
	}
	return nil
}

func (l fakeLease) Release(context.Context) error {
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[l.name] = false
	l.freed.Broadcast()
	return nil
}

// unordered is a fake that does not promise increasing tokens.
type unordered struct{ *fake }

func (unordered) Unordered() {}
