package fencing_test

import (
	"fmt"
	"testing"
)

var (
	levels  = []string{"read committed", "repeatable read", "serializable"}
	commits = [2]string{"commit", "commit"}
)

// TestToken7NeverCommitsAfter8 runs transactions with the tokens 7 and 8
// in every order of their steps.
func TestToken7NeverCommitsAfter8(t *testing.T) {
	t.Parallel()
	for _, first := range levels {
		for _, second := range levels {
			t.Run(first+" and "+second, func(t *testing.T) {
				t.Parallel()
				s := newHarness(t)
				for _, known := range []int{0, 6, 7} {
					for _, snapshot := range []bool{false, true} {
						s.inEveryOrder(schedule{
							levels: [2]string{first, second}, tokens: [2]int{7, 8}, ends: commits,
							known: known, snapshot: snapshot, way: byFunction,
						})
					}
				}
			})
		}
	}
}

func TestTriggerNeverLetsToken7CommitAfter8(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t)
			for _, known := range []int{0, 7} {
				s.inEveryOrder(schedule{
					levels: [2]string{level, level}, tokens: [2]int{7, 8}, ends: commits, known: known, way: byTrigger,
				})
			}
		})
	}
}

// inEveryOrder plays p in every order and judges each outcome.
func (s *harness) inEveryOrder(p schedule) {
	s.Helper()
	for i, order := range orders(steps) {
		o := s.execute(p, order, fmt.Sprintf("%s:%d:%t:%d", p.way, p.known, p.snapshot, i))
		if wrong := p.violation(o); wrong != "" {
			s.Errorf("%s: %+v in the order %v: fenced %v, committed %v, errors %v",
				wrong, p, order, o.fenced, o.commits, o.errs)
		}
	}
}

// violation says what is wrong with the outcome of tokens 7 and 8, or returns the empty string.
// Above READ COMMITTED either transaction may fail with 40001 instead.
func (p schedule) violation(o outcome) string {
	for _, err := range o.errs {
		if state := sqlstate(err); err != nil && state != "PF001" && state != "40001" {
			return "an unexpected error"
		}
	}
	switch plain := p.levels == [2]string{levels[0], levels[0]}; {
	case p.inverted(o):
		return "7 was committed after 8"
	case len(o.commits) == 0:
		return "no session has committed"
	case sqlstate(o.errs[1]) == "PF001":
		return "8 was called stale"
	case plain && o.errs[1] != nil:
		return "8 was refused"
	case plain && (o.errs[0] == nil) != (o.fenced[0] == 0):
		return "7 was not decided by the order at the fence"
	}
	return ""
}

// TestWithoutAFenceToken7CommitsAfter8 proves that the tests above can fail.
func TestWithoutAFenceToken7CommitsAfter8(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	p := schedule{levels: [2]string{levels[0], levels[0]}, tokens: [2]int{7, 8}, ends: commits, way: byNothing}
	inverted := 0
	all := orders(steps)
	for i, order := range all {
		if p.inverted(s.execute(p, order, fmt.Sprint(i))) {
			inverted++
		}
	}
	if inverted != len(all)/2 {
		t.Errorf("7 was committed after 8 in %d orders of %d, want half", inverted, len(all))
	}
}

// TestEqualTokensTakeTurns: a holder may write on several connections at once.
func TestEqualTokensTakeTurns(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	for _, known := range []int{0, 7, 8} {
		p := schedule{
			levels: [2]string{levels[0], levels[0]}, tokens: [2]int{8, 8}, ends: commits,
			known: known, way: byFunction,
		}
		for i, order := range orders(steps) {
			o := s.execute(p, order, fmt.Sprintf("%d:%d", known, i))
			if len(o.commits) != 2 || o.commits[0] != o.fenced[0] {
				t.Errorf("known %d, order %v: fenced %v, committed %v, errors %v",
					known, order, o.fenced, o.commits, o.errs)
			}
		}
	}
}

// TestRolledBackTokenIsNotSeen: 7 goes on although 8 was at the fence before it.
func TestRolledBackTokenIsNotSeen(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	for _, known := range []int{0, 6} {
		p := schedule{
			levels: [2]string{levels[0], levels[0]}, tokens: [2]int{7, 8}, ends: [2]string{"commit", "rollback"},
			known: known, way: byFunction,
		}
		for i, order := range orders(steps) {
			if o := s.execute(p, order, fmt.Sprintf("%d:%d", known, i)); len(o.commits) != 1 {
				t.Errorf("known %d, order %v: committed %v, errors %v", known, order, o.commits, o.errs)
			}
		}
	}
}
