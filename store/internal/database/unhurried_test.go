package database

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestUnhurriedWorkTakesTurns: it never runs twice at a time, so it needs one connection.
func TestUnhurriedWorkTakesTurns(t *testing.T) {
	t.Parallel()
	d := &DB{ctx: t.Context()}
	var running, runs atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			err := d.Unhurried(func(context.Context) error {
				if n := running.Add(1); n > 1 {
					t.Errorf("%d run at a time", n)
				}
				time.Sleep(time.Millisecond)
				running.Add(-1)
				runs.Add(1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := runs.Load(); n != 8 {
		t.Errorf("%d of 8 ran", n)
	}
}
