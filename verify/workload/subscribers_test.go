package workload_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// pages is a stream over the pages of a service.
type pages struct {
	ctx   context.Context
	locks lock.Service
	query lock.EventQuery
}

// Next returns one event, or none after a wait.
func (p *pages) Next() (lock.Page[lock.Event], error) {
	p.query.Limit, p.query.Wait = 1, time.Second
	page, err := p.locks.Events(p.ctx, p.query)
	p.query.Cursor = page.Next
	return page, err
}

// Close does nothing.
func (p *pages) Close() error { return nil }

// streamed adds streams to the services.
func streamed(all []workload.Replica) []workload.Replica {
	for i, s := range all {
		all[i].Stream = workload.StreamOf(func(ctx context.Context, q lock.EventQuery) (*pages, error) {
			return &pages{ctx, s.Locks, q}, nil
		})
	}
	return all
}

// examined runs a load with subscribers in simulated time and checks what was recorded.
func examined(t *testing.T, services func(*memlock.Memory) []workload.Replica) (workload.Stats, verify.History, verify.Report) {
	t.Helper()
	var stats workload.Stats
	var h verify.History
	synctest.Test(t, func(t *testing.T) {
		m, rec := memlock.New(), verify.NewRecorder()
		lulls := time.NewTicker(2 * time.Second)
		defer lulls.Stop()
		var err error
		stats, err = workload.Run(t.Context(), rec, workload.Options{
			Services: services(m), Prefix: "verify", Operations: 10_000, For: 20 * time.Second, Seed: 3, Subscribers: true, Lulls: lulls.C,
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h = rec.History()
		if h.Events, err = verify.Collect(t.Context(), m.Replica(1), "verify:"); err != nil {
			t.Fatal(err)
		}
	})
	return stats, h, h.Check(verify.CheckOptions{AllowOvertaking: true})
}

func found(r verify.Report, name string) (examined, violations int) {
	for _, c := range r.Checks {
		if c.Name == name {
			return c.Examined, len(c.Violations)
		}
	}
	return 0, 0
}

const (
	told     = "every subscriber was told every event, once and in order"
	prompt   = "subscribers were told promptly"
	blocking = "blocking reads returned when the lock changed"
)

func TestSubscribersAreToldOfEverything(t *testing.T) {
	t.Parallel()
	stats, h, r := examined(t, func(m *memlock.Memory) []workload.Replica { return streamed(twoOf(m)) })
	s := stats.Subscribers
	t.Logf("%v", s)
	if !r.OK() {
		t.Errorf("violations in a service without a fault: %+v", r.Checks)
	}
	if s.Streams != 2 || s.Pollers != 2 || s.Watchers != 2 || s.Connections < 5 || s.Gaps != 0 || s.Watches < 10 {
		t.Errorf("the subscribers were %+v", s)
	}
	for _, name := range []string{told, prompt, blocking} {
		if n, _ := found(r, name); n < 10 {
			t.Errorf("%s: only %d cases", name, n)
		}
	}
	if len(h.Calls) != stats.Total() {
		t.Errorf("%d calls were recorded and %d counted", len(h.Calls), stats.Total())
	}
	last := h.Subscriptions[0].Requests
	end := last[len(last)-1].Deliveries
	if e := end[len(end)-1].Events; len(e) == 0 || e[len(e)-1].Name != "verify:end" {
		t.Error("the first subscriber did not read on to the end")
	}
}

// A deaf service does not tell of every hundredth event.
type deaf struct{ lock.Service }

func (d deaf) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	page, err := d.Service.Events(ctx, q)
	var told []lock.Event
	for _, e := range page.Items {
		if e.ID%100 != 0 {
			told = append(told, e)
		}
	}
	page.Items = told
	return page, err
}

// A sleepy service returns from a blocking read when its wait is over.
type sleepy struct{ lock.Service }

func (s sleepy) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	select {
	case <-time.After(w.Wait):
	case <-ctx.Done():
		return lock.Lock{}, &lock.Error{Code: lock.ErrUnavailable, Cause: ctx.Err()}
	}
	return s.Lock(ctx, w.Name)
}

// A tardy service tells events four seconds late.
type tardy struct{ lock.Service }

func (d tardy) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	page, err := d.Service.Events(ctx, q)
	if q.Cursor != lock.CursorNow {
		select {
		case <-time.After(4 * time.Second):
		case <-ctx.Done():
		}
	}
	return page, err
}

func TestWhatSubscribersAreNotToldIsFound(t *testing.T) {
	t.Parallel()
	with := func(change func(lock.Service) lock.Service) func(*memlock.Memory) []workload.Replica {
		return func(m *memlock.Memory) []workload.Replica {
			all := twoOf(m)
			all[1].Locks = change(all[1].Locks)
			return streamed(all)
		}
	}
	for check, services := range map[string]func(*memlock.Memory) []workload.Replica{
		told:     with(func(s lock.Service) lock.Service { return deaf{s} }),
		prompt:   with(func(s lock.Service) lock.Service { return tardy{s} }),
		blocking: with(func(s lock.Service) lock.Service { return sleepy{s} }),
	} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			_, _, r := examined(t, services)
			if _, n := found(r, check); n == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

func TestSubscribersStopThoughTheServiceTellsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		broken := workload.StreamOf(func(context.Context, lock.EventQuery) (*pages, error) { return nil, errors.New("no") })
		mute := []workload.Replica{{Via: "here", Locks: mute{memlock.New().Replica(1)}, Stream: broken}}
		_, err := workload.Run(t.Context(), verify.NewRecorder(), workload.Options{Services: mute, Prefix: "verify", For: 5 * time.Second, Subscribers: true})
		if took := time.Since(began); err != nil || took > time.Minute {
			t.Errorf("the run ended after %v with %v", took, err)
		}
	})
}

// A mute service tells no events.
type mute struct{ lock.Service }

func (mute) Events(context.Context, lock.EventQuery) (lock.Page[lock.Event], error) {
	return lock.Page[lock.Event]{}, &lock.Error{Code: lock.ErrUnavailable}
}
