package workload_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// pages is a stream over the pages of a service.
type pages struct {
	ctx   context.Context
	locks paddock.Service
	query paddock.EventQuery
}

// Next returns one event, or none after a wait.
func (p *pages) Next() (paddock.Page[lock.Event], error) {
	p.query.Limit, p.query.Wait = 1, time.Second
	page, err := p.locks.Events(p.ctx, p.query)
	p.query.Cursor = page.Next
	return page, err
}

// Close does nothing.
func (p *pages) Close() error { return nil }

// withStreams adds streams to the replicas.
func withStreams(all []workload.Replica) []workload.Replica {
	for i, s := range all {
		all[i].Stream = workload.StreamOf(func(ctx context.Context, q paddock.EventQuery) (*pages, error) {
			return &pages{ctx, s.Locks, q}, nil
		})
	}
	return all
}

// runAndCheck runs a workload with subscribers in simulated time and checks the history.
func runAndCheck(t *testing.T, services func(*memlock.Memory) []workload.Replica) (workload.Stats, verify.History,
	verify.Report) {
	t.Helper()
	var stats workload.Stats
	var h verify.History
	synctest.Test(t, func(t *testing.T) {
		m, rec := memlock.New(), verify.NewRecorder()
		lulls := time.NewTicker(2 * time.Second)
		defer lulls.Stop()
		var err error
		stats, err = workload.Run(t.Context(), rec, workload.Options{
			Services: services(m), Prefix: "verify", Operations: 10_000, For: 20 * time.Second, Seed: 3,
			Subscribers: true, Lulls: lulls.C,
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

func casesOf(r verify.Report, name string) (examined, violations int) {
	for _, c := range r.Checks {
		if c.Name == name {
			return c.Examined, len(c.Violations)
		}
	}
	return 0, 0
}

const (
	deliveries    = "every subscriber received every event once, in order"
	promptness    = "subscribers received events promptly"
	blockingReads = "blocking reads returned when the lock changed"
)

func TestSubscribersReceiveEverything(t *testing.T) {
	t.Parallel()
	stats, h, r := runAndCheck(t, func(m *memlock.Memory) []workload.Replica { return withStreams(twoReplicas(m)) })
	s := stats.Subscribers
	t.Logf("%v", s)
	if !r.OK() {
		t.Errorf("violations in a correct service: %+v", r.Checks)
	}
	if s.Streams != 2 || s.Pollers != 2 || s.Watchers != 2 || s.Connections < 5 || s.Gaps != 0 || s.Watches < 10 {
		t.Errorf("the subscribers were %+v", s)
	}
	for _, name := range []string{deliveries, promptness, blockingReads} {
		if n, _ := casesOf(r, name); n < 10 {
			t.Errorf("%s: only %d cases", name, n)
		}
	}
	if len(h.Calls) != stats.Total() {
		t.Errorf("%d calls were recorded and %d counted", len(h.Calls), stats.Total())
	}
	last := h.Subscriptions[0].Requests
	end := last[len(last)-1].Deliveries
	if e := end[len(end)-1].Events; len(e) == 0 || e[len(e)-1].Name != "verify:end" {
		t.Error("the first subscriber did not read to the last event")
	}
}

func TestSubscribersStopWithoutEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		broken := workload.StreamOf(func(context.Context, paddock.EventQuery) (*pages,
			error) {
			return nil, errors.New("no")
		})
		mute := []workload.Replica{{Via: "here", Locks: noEvents{memlock.New().Replica(1)}, Stream: broken}}
		_, err := workload.Run(t.Context(), verify.NewRecorder(),
			workload.Options{Services: mute, Prefix: "verify", For: 5 * time.Second, Subscribers: true})
		if took := time.Since(began); err != nil || took > time.Minute {
			t.Errorf("the run ended after %v with %v", took, err)
		}
	})
}

// noEvents is a service that returns no events.
type noEvents struct{ paddock.Service }

func (noEvents) Events(context.Context, paddock.EventQuery) (paddock.Page[lock.Event], error) {
	return paddock.Page[lock.Event]{}, &lock.Error{Code: lock.ErrUnavailable}
}
