package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock/internal/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type call = batch.Call[int, int]

// doubler answers each call with twice its request and records the batches.
type doubler struct {
	mu      sync.Mutex
	batches [][]int
	gate    chan struct{} // each batch waits for one value, if not nil
}

func (d *doubler) run(calls []*call) {
	var reqs []int
	for _, c := range calls {
		reqs = append(reqs, c.Req)
	}
	d.mu.Lock()
	d.batches = append(d.batches, reqs)
	d.mu.Unlock()
	if d.gate != nil {
		<-d.gate
	}
	for _, c := range calls {
		if c.Begin() {
			c.Answer(2*c.Req, nil)
		}
	}
}

// doAndCancel submits a call, cancels it when all goroutines are blocked, and returns the
// error of Do.
func doAndCancel(t *testing.T, g *batch.Group[int, int]) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := g.Do(ctx, 1); done <- err }()
	synctest.Wait()
	cancel()
	return <-done
}

func TestCallsThatArriveDuringABatchFormTheNextOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{gate: make(chan struct{})}
		g := batch.New(3, 100, d.run)
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				if res, err := g.Do(t.Context(), i); err != nil || res != 2*i {
					t.Errorf("Do(%d) = %d, %v", i, res, err)
				}
			})
			synctest.Wait()
		}
		for range 3 {
			d.gate <- struct{}{}
		}
		wg.Wait()
		g.Wait()
		want := [][]int{{0}, {1, 2, 3}, {4, 5}}
		if !slices.EqualFunc(d.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", d.batches, want)
		}
	})
}

func TestACallCanceledBeforeItBeganIsNeverRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{gate: make(chan struct{})}
		g := batch.New(10, 100, d.run)
		err := doAndCancel(t, g)
		if a := new(batch.CanceledError); !errors.As(err, &a) || a.Started || !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want CanceledError before it began", err)
		}
		d.gate <- struct{}{} // the runner's Begin now returns false
		g.Wait()
	})
}

func TestACallCanceledAfterItBeganReportsThat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		g := batch.New(10, 100, func(calls []*call) {
			calls[0].Begin()
			<-gate
			calls[0].Answer(0, nil)
		})
		err := doAndCancel(t, g)
		if a := new(batch.CanceledError); !errors.As(err, &a) || !a.Started {
			t.Errorf("err = %v, want CanceledError after it began", err)
		}
		close(gate)
		g.Wait()
	})
}

func TestARewoundCallCanBeCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var again bool
		g := batch.New(10, 100, func(calls []*call) {
			calls[0].Begin()
			calls[0].Rewind()
			<-gate
			again = calls[0].Begin()
		})
		err := doAndCancel(t, g)
		if a := new(batch.CanceledError); !errors.As(err, &a) || a.Started {
			t.Errorf("err = %v, want CanceledError before it began", err)
		}
		close(gate)
		g.Wait()
		if again {
			t.Error("Begin = true for a canceled call")
		}
	})
}

func TestACallCanceledWhileItRunsIsNotRunAgainAfterARewind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var again bool
		g := batch.New(10, 100, func(calls []*call) {
			calls[0].Begin()
			<-gate
			calls[0].Rewind()
			again = calls[0].Begin()
		})
		err := doAndCancel(t, g)
		if a := new(batch.CanceledError); !errors.As(err, &a) || !a.Started {
			t.Errorf("err = %v, want CanceledError after it began", err)
		}
		close(gate)
		g.Wait()
		if again {
			t.Error("Begin = true for a canceled call")
		}
	})
}

func TestAFullQueueRefusesCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{gate: make(chan struct{})}
		g := batch.New(1, 2, d.run)
		var wg sync.WaitGroup
		for range 3 { // one runs, two are queued
			wg.Go(func() {
				if _, err := g.Do(t.Context(), 1); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if _, err := g.Do(t.Context(), 1); !errors.Is(err, batch.ErrFull) {
			t.Errorf("err = %v, want ErrFull", err)
		}
		for range 3 {
			d.gate <- struct{}{}
		}
		wg.Wait()
	})
}

func TestACallCanMoveToAnotherGroup(t *testing.T) {
	t.Parallel()
	d := new(doubler)
	second := batch.New(10, 100, d.run)
	first := batch.New(10, 100, func(calls []*call) { second.Offer(calls...) })
	if res, err := first.Do(t.Context(), 21); err != nil || res != 42 {
		t.Errorf("Do = %d, %v", res, err)
	}
	first.Wait()
	second.Wait()
}

func TestOfferQueuesAllCallsOrNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{gate: make(chan struct{})}
		g := batch.New(2, 3, d.run)
		calls := make([]*call, 7)
		for i := range calls {
			calls[i] = batch.NewCall[int, int](i)
		}
		if g.Offer(calls[:4]...) {
			t.Error("four calls were queued in a queue of three")
		}
		if !g.Offer() || !g.Offer(calls[0]) {
			t.Error("Offer refused no calls, or one call")
		}
		synctest.Wait() // the call runs
		if !g.Offer(calls[1:3]...) || g.Offer(calls[3:5]...) || !g.Offer(calls[5]) || g.Offer(calls[6]) {
			t.Error("with room for one call, Offer queued two or refused one")
		}
		for range 3 {
			d.gate <- struct{}{}
		}
		for _, i := range []int{0, 1, 2, 5} {
			if res, err := calls[i].Wait(t.Context()); res != 2*i || err != nil {
				t.Errorf("call %d got the answer %d, %v", i, res, err)
			}
		}
		g.Wait()
		if want := [][]int{{0}, {1, 2}, {5}}; !slices.EqualFunc(d.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", d.batches, want)
		}
	})
}

// TestAnAnswerWinsOverAnEndedContext repeats Wait because select chooses at random.
func TestAnAnswerWinsOverAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := batch.NewCall[int, int](1)
	c.Answer(2, nil)
	for range 100 {
		if res, err := c.Wait(ctx); res != 2 || err != nil {
			t.Fatalf("Wait = %d, %v", res, err)
		}
	}
}
