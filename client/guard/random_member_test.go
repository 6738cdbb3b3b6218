package guard_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// A member is a guard on its own machine. It is also the service behind the guard's faulty connection, and can deliver
// calls late.
type member struct {
	paddock.Service
	*model
	holder       string
	rnd          *rand.Rand
	faultRnd     *rand.Rand // for faults
	service      *faultyService
	suspends     bool         // the machine is suspended at times
	suspended    atomic.Int64 // total suspension of the machine
	suspendedAt  sync.Map     // suspended when the service last moved a lease's end, by token
	delay        atomic.Int64 // of calls that are sent now
	delayedCalls atomic.Int64 // number of delayed calls
	faultChanges atomic.Int64 // incremented at the start and end of each fault: odd during a fault
	lastCleanUp  atomic.Int64 // value of faultChanges when the guard last had to clean up
}

// noFaultSince reports whether there was no fault since faultChanges had the value.
func (m *member) noFaultSince(since int64) bool {
	return since%2 == 0 && m.faultChanges.Load() == since
}

// injectFaults injects faults at random times.
func (m *member) injectFaults() {
	for time.Sleep(randomUpTo(m.faultRnd, 4*m.ttl)); time.Now().Before(m.faultsEnd); time.Sleep(randomUpTo(m.faultRnd, 4*m.ttl)) {
		m.faultChanges.Add(1)
		if m.faultRnd.IntN(4) == 0 {
			m.delay.Store(int64(randomUpTo(m.faultRnd, maxDelay)))
		} else {
			m.service.setFault(oneOf(m.faultRnd, fault{refuse: true}, fault{blackHole: true}, fault{loseAnswer: true}, fault{delay: randomUpTo(m.faultRnd, m.ttl/2)}))
		}
		time.Sleep(randomUpTo(m.faultRnd, m.ttl))
		if m.suspends {
			m.suspended.Add(int64(randomUpTo(m.faultRnd, m.ttl)))
		}
		time.Sleep(randomUpTo(m.faultRnd, m.ttl))
		m.delay.Store(0)
		m.service.setFault(fault{})
		m.faultChanges.Add(1)
	}
}

// suspendedSince returns how long the machine was suspended since the service last moved the lease's end.
func (m *member) suspendedSince(token lock.Token) time.Duration {
	seen, _ := m.suspendedAt.LoadOrStore(token, int64(0))
	return time.Duration(m.suspended.Load() - seen.(int64))
}

// deliver delivers a call. The answer to a delayed call is lost.
func deliver[C, T any](ctx context.Context, m *member, c C, call func(context.Context, C) (T, error)) (T, error) {
	deliver := func(ctx context.Context) (T, error) {
		t, err := call(ctx, c)
		if g, ok := any(&t).(*lock.Grant); ok && err == nil {
			if !g.Replayed {
				m.suspendedAt.Store(g.Token, m.suspended.Load())
			}
			g.Until = g.Until.Add(-m.suspendedSince(g.Token))
		}
		m.checkJobs()
		return t, err
	}
	delay := m.delay.Load()
	if delay == 0 {
		return deliver(ctx)
	}
	m.delayedCalls.Add(1)
	go func() {
		time.Sleep(time.Duration(delay))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the service notices by then that the client is gone
		defer cancel()
		_, _ = deliver(ctx)
	}()
	<-ctx.Done()
	return *new(T), &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Late.", Cause: context.Cause(ctx)}
}

func (m *member) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return deliver(ctx, m, a, m.Service.Acquire)
}

func (m *member) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return deliver(ctx, m, r, m.Service.Renew)
}

func (m *member) Release(ctx context.Context, r lock.Release) error {
	_, err := deliver(ctx, m, r, func(ctx context.Context, r lock.Release) (any, error) { return nil, m.Service.Release(ctx, r) })
	return err
}

// attemptAtRandom makes an attempt with random options.
func (m *member) attemptAtRandom() {
	mode := oneOf(m.rnd, m.modes...)
	o := guard.Options{
		Mode: mode, Capacity: map[lock.Mode]int{lock.Permit: permits}[mode], TTL: m.ttl,
		Margin: oneOf(m.rnd, 0, m.ttl/3), Grace: oneOf(m.rnd, 0, m.ttl/2),
		MaxHold: oneOf(m.rnd, 0, 0, 0, 2*m.ttl), Wait: oneOf(m.rnd, 0, randomUpTo(m.rnd, m.ttl), time.Minute, guard.Forever),
		Retry: oneOf(m.rnd, -1, 0, time.Minute),
	}
	length, stopDelay := randomUpTo(m.rnd, 4*m.ttl), oneOf(m.rnd, 0, 0, randomUpTo(m.rnd, m.ttl))
	timeout := oneOf(m.rnd, longWait, longWait, longWait, randomUpTo(m.rnd, 3*m.ttl))
	names := slices.Clone(m.names)
	m.rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	m.attempt(names[:1+m.rnd.IntN(len(names))], o, length, stopDelay, timeout)
}

// attempt runs a job of the given length under the locks, all or none, and checks the result. When canceled, the job
// runs on for stopDelay. The attempt is canceled after timeout; a timeout of longWait must not be reached.
func (m *member) attempt(names []string, o guard.Options, length, stopDelay, timeout time.Duration) {
	ctx, cancel := context.WithCancel(m.Context())
	defer cancel()
	has, revoked, faults, delayed := true, false, m.faultChanges.Load(), m.delayedCalls.Load()
	m.lastCleanUp.Store(faults)
	end := time.AfterFunc(timeout, func() { m.lastCleanUp.Store(m.faultChanges.Load()); cancel() })
	defer end.Stop()
	o.Holder = fmt.Sprintf("%s at %v", m.holder, time.Now())
	err := m.do(ctx, names, o, func(ctx context.Context, l *guard.Lease) error {
		k := &job{member: m, lease: l, mode: cmp.Or(o.Mode, lock.Exclusive), margin: cmp.Or(o.Margin, o.TTL/10)}
		k.ctx, k.done = ctx, ctx.Done()
		m.startJob(k)
		faults = m.faultChanges.Load() // without faults during the job, its lease must not be lost
		ended := make(chan struct{})
		defer close(ended)
		go m.checkAtDeadline(k, ended)
		select {
		case <-time.After(length):
		case <-ctx.Done():
			time.Sleep(stopDelay)
		}
		has, revoked = m.endJob(k)
		end.Stop()
		m.lastCleanUp.Store(m.faultChanges.Load())
		return context.Cause(ctx)
	})
	switch noFaults, lost := m.noFaultSince(faults), errors.Is(err, lock.ErrLeaseLost); {
	case m.noFaultSince(m.lastCleanUp.Load()) &&
		(!has && !lost || m.delayedCalls.Load() == delayed && slices.ContainsFunc(names, func(name string) bool { return m.leavesBehind(name, o.Holder) })):
		m.Errorf("%s does not report its loss, or leaves something behind: %v", o.Holder, err)
	case err == nil, lost && (revoked || o.MaxHold > 0), timeout < longWait && errors.Is(err, context.Canceled):
	case errors.Is(err, lock.ErrHeld) && o.Wait != guard.Forever:
	case noFaults || timeout == longWait && ctx.Err() != nil || !errors.As(err, new(*lock.Error)):
		m.Errorf("%s ended with %v; no faults: %v", o.Holder, err, noFaults)
	}
}

// do is guard.DoAll with the member's suspensions.
func (m *member) do(ctx context.Context, names []string, o guard.Options, work func(context.Context, *guard.Lease) error) error {
	members := make([]lock.Member, len(names))
	for i, name := range names {
		members[i].Name = name
	}
	if !m.suspends {
		return guard.DoAll(ctx, m.service, members, o, work)
	}
	l, err := guard.AcquireSuspended(ctx, m.service, members, o, func() time.Duration { return time.Duration(m.suspended.Load()) })
	if err != nil {
		return err
	}
	workCtx, cancel := l.Context(ctx)
	err = errors.Join(work(workCtx, l), l.Err())
	cancel()
	if left := l.Release(ctx); errors.Is(left, lock.ErrLeaseLost) {
		err = errors.Join(err, left)
	}
	return err
}

// leavesBehind reports whether the service has a lease or a place of the holder.
func (m *member) leavesBehind(name, holder string) bool {
	q, err := m.Queue(context.Background(), name)
	m.must(err)
	return slices.ContainsFunc(q.Waiters, func(w lock.WaiterInfo) bool { return w.Holder == holder }) ||
		slices.ContainsFunc(m.lock(name).Leases, func(h lock.LeaseInfo) bool { return h.Holder == holder && !h.Revoked })
}
