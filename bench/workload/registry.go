package workload

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A lockRegistry contains the locks of a run with their known holders.
type lockRegistry struct {
	began time.Time
	locks sync.Map // of *trackedLock, by name
}

func newLockRegistry() *lockRegistry { return &lockRegistry{began: time.Now()} }

// lock returns the lock with the name.
func (r *lockRegistry) lock(name string) *trackedLock {
	found, ok := r.locks.Load(name)
	if !ok {
		found, _ = r.locks.LoadOrStore(name, &trackedLock{name: name, registry: r})
	}
	return found.(*trackedLock)
}

// A trackedLock is a lock with its known owner. The owner is set after a grant and cleared before the
// release is sent, so a second owner is proof of two simultaneous holders.
type trackedLock struct {
	name     string
	registry *lockRegistry
	owner    atomic.Int64 // number of the client, starting at 1; zero if there is none
	token    atomic.Int64 // of the latest grant
	released atomic.Int64 // when the latest release was sent, in ns since began; zero if never
}

// errTokenOrder means that a token is not greater than the previous one.
var errTokenOrder = errors.New("tokens do not increase")

// granted records a grant and returns an error if it breaks a rule.
func (s *trackedLock) granted(to int, token int64) error {
	if !s.owner.CompareAndSwap(0, int64(to)+1) {
		return fmt.Errorf("exclusion is broken: %s was granted to client %d while client %d holds it", s.name, to, s.owner.Load()-1)
	}
	if last := s.token.Swap(token); token != 0 && token <= last {
		return fmt.Errorf("%w: %s was granted with token %d after %d", errTokenOrder, s.name, token, last)
	}
	return nil
}

// releasing records that the holder is about to release the lock.
func (s *trackedLock) releasing(by int) error {
	s.released.Store(int64(time.Since(s.registry.began)))
	if !s.owner.CompareAndSwap(int64(by)+1, 0) {
		return fmt.Errorf("exclusion is broken: %s is held by client %d while client %d holds it", s.name, s.owner.Load()-1, by)
	}
	return nil
}

// sinceRelease returns the time since the latest release was sent, or false if there was none.
func (s *trackedLock) sinceRelease() (time.Duration, bool) {
	at := s.released.Load()
	return time.Since(s.registry.began) - time.Duration(at), at != 0
}
