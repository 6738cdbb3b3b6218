package workload

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A field is the names that a run uses, each with who has it as far as we know.
type field struct {
	began time.Time
	spots sync.Map // of *spot, by name
}

func newField() *field { return &field{began: time.Now()} }

// spot returns what is known of a name.
func (f *field) spot(name string) *spot {
	found, ok := f.spots.Load(name)
	if !ok {
		found, _ = f.spots.LoadOrStore(name, &spot{name: name, field: f})
	}
	return found.(*spot)
}

// A spot is one name. Its owner is set after a grant and cleared before the release is sent, so
// that two owners at once are two holders at once.
type spot struct {
	name     string
	field    *field
	owner    atomic.Int64 // the client's number from 1, zero: nobody
	token    atomic.Int64 // of the newest grant
	released atomic.Int64 // when the release was begun, in ns since the field's beginning; zero: never
}

// errOrder is what is wrong if a token is not greater than the one before.
var errOrder = errors.New("tokens do not grow")

// granted notes a grant, and returns an error if it must not have been.
func (s *spot) granted(to int, token int64) error {
	if !s.owner.CompareAndSwap(0, int64(to)+1) {
		return fmt.Errorf("exclusion is broken: %s was granted to client %d while client %d has it", s.name, to, s.owner.Load()-1)
	}
	if last := s.token.Swap(token); token != 0 && token <= last {
		return fmt.Errorf("%w: %s was granted with %d after %d", errOrder, s.name, token, last)
	}
	return nil
}

// releasing notes that the holder is about to release.
func (s *spot) releasing(by int) error {
	s.released.Store(int64(time.Since(s.field.began)))
	if !s.owner.CompareAndSwap(int64(by)+1, 0) {
		return fmt.Errorf("exclusion is broken: %s is client %d's while client %d has it", s.name, s.owner.Load()-1, by)
	}
	return nil
}

// sinceRelease is how long ago the last release was begun; false if there was none.
func (s *spot) sinceRelease() (time.Duration, bool) {
	at := s.released.Load()
	return time.Since(s.field.began) - time.Duration(at), at != 0
}
