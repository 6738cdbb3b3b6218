package store

import (
	"errors"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

func TestNoMoreMayWatchThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	tail := newTail()
	for range maxWatchers {
		if err := tail.enter(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tail.enter(); !errors.Is(err, lock.ErrTooManyWaiters) {
		t.Errorf("one more gave %v, want too_many_waiters", err)
	}
	tail.leave()
	if err := tail.enter(); err != nil {
		t.Errorf("when one had left the next was refused: %v", err)
	}
}
