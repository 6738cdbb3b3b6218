package workload

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A lockRegistry is the names that a run uses, each with who has it as far as we know.
type lockRegistry struct {
	began time.Time
	locks sync.Map // of *spot, by name
}

func newLockRegistry() *lockRegistry { return &lockRegistry{began: time.Now()} }

// lock returns what is known of a name.
func (f *lockRegistry) lock(name string) *trackedLock {
	found, ok := f.locks.Load(name)
	if !ok {
		found, _ = f.locks.LoadOrStore(name, &trackedLock{name: name, registry: f})
	}
	return found.(*trackedLock)
}

// A trackedLock is one name. Its owner is set after a grant and cleared before the release is sent, so
// that two owners at once are two holders at once.
type trackedLock struct {
	name     string
	registry *lockRegistry
	owner    atomic.Int64 // the client's number from 1, zero: nobody
	token    atomic.Int64 // of the newest grant
	released atomic.Int64 // when the release was begun, in ns since the field's beginning; zero: never
}

// errTokenOrder is what is wrong if a token is not greater than the one before.
var errTokenOrder = errors.New("tokens do not grow")

// granted notes a grant, and returns an error if it must not have been.
func (s *trackedLock) granted(to int, token int64) error {
	if !s.owner.CompareAndSwap(0, int64(to)+1) {
		return fmt.Errorf("exclusion is broken: %s was granted to client %d while client %d has it", s.name, to, s.owner.Load()-1)
	}
	if last := s.token.Swap(token); token != 0 && token <= last {
		return fmt.Errorf("%w: %s was granted with %d after %d", errTokenOrder, s.name, token, last)
	}
	return nil
}

// releasing notes that the holder is about to release.
func (s *trackedLock) releasing(by int) error {
	s.released.Store(int64(time.Since(s.registry.began)))
	if !s.owner.CompareAndSwap(int64(by)+1, 0) {
		return fmt.Errorf("exclusion is broken: %s is client %d's while client %d has it", s.name, s.owner.Load()-1, by)
	}
	return nil
}

// sinceRelease is how long ago the last release was begun; false if there was none.
func (s *trackedLock) sinceRelease() (time.Duration, bool) {
	at := s.released.Load()
	return time.Since(s.registry.began) - time.Duration(at), at != 0
}
