package deployment_test

import (
	"context"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// A listener reads the events of the lock of a fixture, each once. It is for one goroutine.
type listener struct {
	*fixture
	locks  lock.Service
	cursor string
	events []lock.Event // read, and not yet heard
}

// next waits for the next event.
func (l *listener) next() lock.Event {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), proctest.Patience)
	defer cancel()
	for len(l.events) == 0 {
		page, err := l.locks.Events(ctx, lock.EventQuery{Name: l.name, Cursor: l.cursor, Wait: lock.MaxWait})
		l.must(err)
		l.events, l.cursor = page.Items, page.Next
	}
	e := l.events[0]
	l.events = l.events[1:]
	return e
}

// kind waits for the next event of that kind and holder.
func (l *listener) kind(k lock.Kind, holder string) lock.Event {
	l.Helper()
	for {
		if e := l.next(); e.Kind == k && e.Holder == holder {
			return e
		}
	}
}
