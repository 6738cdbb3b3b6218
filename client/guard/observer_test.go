package guard_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// A record is an Observer that writes down what it sees.
type record struct {
	mu    sync.Mutex
	lines []string
}

func (r *record) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *record) Acquired(name string, took time.Duration, err error) {
	r.note("acquired %s after %v: %v", name, took, code(err))
}
func (r *record) Renewed(_ string, left float64, err error) {
	r.note("renewed with %.1f left: %v", left, code(err))
}
func (r *record) AtRisk(_ string, err error) { r.note("at risk: %v", code(err)) }
func (r *record) Lost(_ string, err error)   { r.note("lost: %v", code(err)) }
func (r *record) Released(_ string, held time.Duration, err error) {
	r.note("released after %v: %v", held.Round(time.Second), code(err))
}

// code returns the first word of an error: its code.
func code(err error) string {
	word, _, _ := strings.Cut(fmt.Sprint(err), ":")
	return word
}

// expect checks what was written down, without repetitions, and clears it. A lease is done before its observer is told.
func (r *record) expect(s *fixture, want ...string) {
	s.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []string
	for _, line := range r.lines {
		if len(got) == 0 || got[len(got)-1] != line {
			got = append(got, line)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.Errorf("the observer saw\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	r.lines = nil
}

func TestAnObserverSeesEachStep(t *testing.T) {
	withFixture(t, func(s *fixture) {
		var r record
		l := s.acquire(guard.Options{Observer: &r})
		r.expect(s, "acquired jobs:nightly after 0s: <nil>")
		time.Sleep(2 * ttl)
		r.expect(s, "renewed with 0.7 left: <nil>")
		s.service.setFault(fault{refuse: true})
		time.Sleep(ttl / 3)
		s.service.setFault(fault{})
		time.Sleep(ttl / 6)
		s.must(l.Release(s.Context()))
		text := strings.Join(r.lines, "\n")
		for _, want := range []string{"left: unavailable", "at risk: unavailable", "left: <nil>", "released after 1m15s: <nil>"} {
			if strings.Count(text, want) == 0 {
				s.Errorf("the observer did not see %q:\n%s", want, text)
			}
		}
		if strings.Count(text, "at risk") != 1 {
			s.Errorf("it was at risk more than once:\n%s", text)
		}
	})
}

func TestAnObserverSeesARefusalAndOfALoss(t *testing.T) {
	withFixture(t, func(s *fixture) {
		var r record
		l := s.acquire(guard.Options{Observer: &r})
		_, err := guard.Acquire(s.Context(), s.service, name, guard.Options{Observer: &r, Wait: time.Second})
		s.wantError(err, lock.ErrHeld)
		r.expect(s, "acquired jobs:nightly after 0s: <nil>", "acquired jobs:nightly after 1s: lock_held")
		_, err = s.locks.Revoke(s.Context(), lock.Revoke{Name: name, Token: l.Token(), Reason: "test"})
		s.must(err)
		<-l.Done()
		r.expect(s, "renewed with 0.7 left: lease_lost", "lost: lease_lost")
		s.wantError(l.Release(s.Context()), lock.ErrLeaseLost)
		r.expect(s)
	})
}
