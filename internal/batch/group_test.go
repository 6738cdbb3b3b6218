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

// double answers each call with twice its request and notes the batches.
type double struct {
	mu      sync.Mutex
	batches [][]int
	gate    chan struct{} // each batch waits for one value, if not nil
}

func (d *double) run(calls []*call) {
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

// doAndLeave submits a call, leaves when nothing moves any more, and returns what
// Do says to that.
func doAndLeave(t *testing.T, g *batch.Group[int, int]) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := g.Do(ctx, 1); done <- err }()
	synctest.Wait()
	cancel()
	return <-done
}

func TestWhatArrivesMeanwhileIsTheNextBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &double{gate: make(chan struct{})}
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

func TestACallLeftBeforeItBeganIsNeverRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &double{gate: make(chan struct{})}
		g := batch.New(10, 100, d.run)
		err := doAndLeave(t, g)
		if a := new(batch.Abandoned); !errors.As(err, &a) || a.Started || !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want Abandoned before it began", err)
		}
		d.gate <- struct{}{} // the runner now finds that Begin is false
		g.Wait()
	})
}

func TestACallLeftAfterItBeganSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		g := batch.New(10, 100, func(calls []*call) {
			calls[0].Begin()
			<-gate
			calls[0].Answer(0, nil)
		})
		err := doAndLeave(t, g)
		if a := new(batch.Abandoned); !errors.As(err, &a) || !a.Started {
			t.Errorf("err = %v, want Abandoned after it began", err)
		}
		close(gate)
		g.Wait()
	})
}

func TestARewoundCallCanBeLeftForGood(t *testing.T) {
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
		err := doAndLeave(t, g)
		if a := new(batch.Abandoned); !errors.As(err, &a) || a.Started {
			t.Errorf("err = %v, want Abandoned before it began", err)
		}
		close(gate)
		g.Wait()
		if again {
			t.Error("Begin = true for a call that was left")
		}
	})
}

func TestACallLeftWhileItRunsIsNotRunAgainAfterARewind(t *testing.T) {
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
		err := doAndLeave(t, g)
		if a := new(batch.Abandoned); !errors.As(err, &a) || !a.Started {
			t.Errorf("err = %v, want Abandoned after it began", err)
		}
		close(gate)
		g.Wait()
		if again {
			t.Error("Begin = true for a call whose caller has left")
		}
	})
}

func TestAFullQueueTakesNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &double{gate: make(chan struct{})}
		g := batch.New(1, 2, d.run)
		var wg sync.WaitGroup
		for range 3 { // one runs, two wait
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

func TestACallMayBeHandedOn(t *testing.T) {
	t.Parallel()
	d := new(double)
	second := batch.New(10, 100, d.run)
	first := batch.New(10, 100, func(calls []*call) { second.Add(calls...) })
	if res, err := first.Do(t.Context(), 21); err != nil || res != 42 {
		t.Errorf("Do = %d, %v", res, err)
	}
	first.Wait()
	second.Wait()
}
