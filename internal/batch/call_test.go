package batch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock/internal/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type call = batch.Call[int, int]

// waitAndCancel waits for the call's answer, cancels it when all goroutines are blocked, and checks the error.
func waitAndCancel(t *testing.T, c *call, started bool) {
	t.Helper()
	cause := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() { _, err := c.Wait(ctx); done <- err }()
	synctest.Wait()
	cancel(cause)
	err := <-done
	if a := new(batch.CanceledError); !errors.As(err, &a) || a.Started != started || !errors.Is(err, cause) {
		t.Errorf("err = %v, want a CanceledError with Started = %v and its cause", err, started)
	}
}

func TestACallCanceledBeforeItBeganIsNeverRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := batch.NewCall[int, int](1)
		waitAndCancel(t, c, false)
		if c.Begin() {
			t.Error("Begin = true for a canceled call")
		}
	})
}

func TestACallCanceledAfterItBeganReportsThat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := batch.NewCall[int, int](1)
		if !c.Begin() {
			t.Error("Begin = false for a new call")
		}
		waitAndCancel(t, c, true)
		if !c.Begin() {
			t.Error("Begin = false for a call that already runs")
		}
		if c.Answer(2, nil) {
			t.Error("Answer = true for a canceled call")
		}
	})
}

func TestARewoundCallCanBeCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := batch.NewCall[int, int](1)
		c.Begin()
		c.Rewind()
		waitAndCancel(t, c, false)
		if c.Begin() {
			t.Error("Begin = true for a canceled call")
		}
	})
}

func TestACallCanceledWhileItRunsIsNotRunAgainAfterARewind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := batch.NewCall[int, int](1)
		c.Begin()
		waitAndCancel(t, c, true)
		c.Rewind()
		if c.Begin() {
			t.Error("Begin = true for a canceled call")
		}
	})
}

// TestACallCanBeAnsweredInAnyState: a call is refused before it begins, and answered from another goroutine.
func TestACallCanBeAnsweredInAnyState(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*call){
		"pending": func(*call) {},
		"begun":   func(c *call) { c.Begin() },
		"rewound": func(c *call) { c.Begin(); c.Rewind() },
		"again":   func(c *call) { c.Begin(); c.Rewind(); c.Begin() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, want := batch.NewCall[int, int](21), errors.New("refused")
			prepare(c)
			go func() {
				if !c.Answer(2*c.Req, want) {
					t.Error("Answer = false")
				}
			}()
			if res, err := c.Wait(t.Context()); res != 42 || !errors.Is(err, want) {
				t.Errorf("Wait = %d, %v", res, err)
			}
		})
	}
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

// TestAnAnswerIsReceivedOrReportedAsNotReceived when it comes together with the end of the caller's context.
func TestAnAnswerIsReceivedOrReportedAsNotReceived(t *testing.T) {
	t.Parallel()
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		c := batch.NewCall[int, int](1)
		var given bool
		var all sync.WaitGroup
		all.Go(cancel)
		all.Go(func() { given = c.Answer(2, nil) })
		res, err := c.Wait(ctx)
		if all.Wait(); given != (res == 2 && err == nil) {
			t.Fatalf("Answer = %v, but Wait = %d, %v", given, res, err)
		}
	}
}
