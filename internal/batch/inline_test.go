package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
)

// inlineGroup is a Group whose calls can run inline. It records which did.
type inlineGroup struct {
	*batch.Group[int, int]
	gate chan struct{} // each inline call waits for one value

	mu      sync.Mutex
	inlined []int
	all     sync.WaitGroup
}

func newInlineGroup(maxInFlight int, stallTimeout time.Duration, run func([]*call)) *inlineGroup {
	s := &inlineGroup{Group: batch.New(100, 1000, run), gate: make(chan struct{})}
	s.MaxInFlight, s.StallTimeout, s.RunInline = maxInFlight, stallTimeout, s.runInline
	return s
}

func (s *inlineGroup) runInline(_ context.Context, n int) (int, error) {
	s.mu.Lock()
	s.inlined = append(s.inlined, n)
	s.mu.Unlock()
	<-s.gate
	return 2 * n, nil
}

// submit starts a call with TryInline and waits until all goroutines are blocked.
func (s *inlineGroup) submit(t *testing.T, n int) {
	t.Helper()
	s.all.Go(func() {
		res, err := s.TryInline(t.Context(), n)
		if err != nil || res != 2*n {
			t.Errorf("TryInline(%d) = %d, %v", n, res, err)
		}
	})
	synctest.Wait()
}

func (s *inlineGroup) expectInlined(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.inlined, want) {
		t.Errorf("%v ran inline, want %v", s.inlined, want)
	}
}

func (d *doubler) expect(t *testing.T, want ...[]int) {
	t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.EqualFunc(d.batches, want, slices.Equal) {
		t.Errorf("batches %v, want %v", d.batches, want)
	}
}

func TestCallsRunInlineWhileSlotsAreFreeAndOthersShareABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(doubler)
		s := newInlineGroup(2, 0, d.run)
		for n := range 6 {
			s.submit(t, n)
		}
		s.expectInlined(t, 0, 1)
		d.expect(t)
		s.gate <- struct{}{}
		d.expect(t, []int{2, 3, 4, 5})
		s.gate <- struct{}{}
		s.all.Wait()
		s.Wait()
	})
}

func TestASingleQueuedCallRunsInline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(doubler)
		s := newInlineGroup(1, 0, d.run)
		s.submit(t, 1)
		s.submit(t, 2)
		s.gate <- struct{}{}
		s.expectInlined(t, 1, 2)
		s.submit(t, 3)
		s.submit(t, 4)
		s.expectInlined(t, 1, 2) // the slot is still taken
		s.gate <- struct{}{}
		d.expect(t, []int{3, 4})
		s.all.Wait()
		s.Wait()
	})
}

func TestSeveralBatchesRunConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{gate: make(chan struct{})}
		g := batch.New(2, 100, d.run)
		g.MaxInFlight = 3
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				if _, err := g.Do(t.Context(), n); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		d.expect(t, []int{0}, []int{1}, []int{2})
		d.gate <- struct{}{}
		d.expect(t, []int{0}, []int{1}, []int{2}, []int{3, 4})
		for range 5 {
			d.gate <- struct{}{}
		}
		all.Wait()
		g.Wait()
	})
}

func TestAStalledBatchDoesNotBlockTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{gate: make(chan struct{})}
		s := newInlineGroup(2, time.Second, d.run)
		for n := range 4 {
			s.submit(t, n) // 0 and 1 stall
		}
		<-time.After(time.Second)
		d.expect(t, []int{2, 3})
		s.submit(t, 4) // one slot is left
		s.expectInlined(t, 0, 1, 4)
		for n := 5; n < 8; n++ {
			s.submit(t, n)
		}
		d.gate <- struct{}{} // ends the batch of 2 and 3, which holds a slot
		d.expect(t, []int{2, 3}, []int{5, 6, 7})
		s.submit(t, 8)
		s.gate <- struct{}{} // ends call 0, which holds no slot any more
		s.gate <- struct{}{} // ends call 1
		s.expectInlined(t, 0, 1, 4)
		s.gate <- struct{}{} // ends call 4, which holds a slot
		s.expectInlined(t, 0, 1, 4, 8)
		s.gate <- struct{}{}
		d.gate <- struct{}{}
		s.all.Wait()
		s.Wait()
	})
}

func TestCallsHandedBackRunInline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newInlineGroup(1, 0, func(calls []*call) {
			for i, c := range calls {
				if i > 0 {
					c.Begin() // such a call may be run again
				}
				c.HandBack()
			}
		})
		for n := range 4 {
			s.submit(t, n)
		}
		s.gate <- struct{}{}
		synctest.Wait()
		s.mu.Lock()
		slices.Sort(s.inlined)
		s.mu.Unlock()
		s.expectInlined(t, 0, 1, 2, 3) // they run concurrently
		for range 3 {
			s.gate <- struct{}{}
		}
		s.all.Wait()
		s.Wait()
	})
}

func TestACallCanceledWhileQueuedDoesNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newInlineGroup(1, 0, new(doubler).run)
		s.submit(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := s.TryInline(ctx, 2)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if a := (*batch.CanceledError)(nil); !errors.As(<-done, &a) || a.Started {
			t.Errorf("TryInline = %v, want CanceledError before it began", a)
		}
		s.gate <- struct{}{}
		s.expectInlined(t, 1)
		s.all.Wait()
		s.Wait() // the slot is free
	})
}

func TestTryInlineRefusesACallWhenTheQueueIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newInlineGroup(1, 0, new(doubler).run)
		s.Group = batch.New(1, 1, new(doubler).run)
		s.RunInline = s.runInline
		s.submit(t, 1)
		s.submit(t, 2)
		if _, err := s.TryInline(t.Context(), 3); !errors.Is(err, batch.ErrFull) {
			t.Errorf("TryInline = %v, want ErrFull", err)
		}
		s.gate <- struct{}{}
		s.gate <- struct{}{}
		s.all.Wait()
	})
}
