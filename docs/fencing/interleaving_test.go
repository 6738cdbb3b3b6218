package fencing_test

import (
	"fmt"
	"testing"
)

var (
	levels  = []string{"read committed", "repeatable read", "serializable"}
	commits = [2]string{"commit", "commit"}
)

// TestToken7NeverCommitsAfterToken8 executes transactions with the tokens 7 and 8 in every order of their steps.
func TestToken7NeverCommitsAfterToken8(t *testing.T) {
	t.Parallel()
	for _, first := range levels {
		for _, second := range levels {
			t.Run(first+" and "+second, func(t *testing.T) {
				t.Parallel()
				s := newHarness(t)
				for _, known := range []int{0, 6, 7} {
					for _, snapshot := range []bool{false, true} {
						p := interleaving{levels: [2]string{first, second}, tokens: [2]int{7, 8}, ends: commits, known: known, snapshot: snapshot, fencedBy: byFunction}
						s.runInEveryOrder(p)
					}
				}
			})
		}
	}
}

// TestOtherWaysNeverLetToken7CommitAfterToken8: a guarded table, and several resources in one call.
func TestOtherWaysNeverLetToken7CommitAfterToken8(t *testing.T) {
	t.Parallel()
	for _, way := range []string{byTrigger, byArray} {
		for _, level := range levels {
			t.Run(way+", "+level, func(t *testing.T) {
				t.Parallel()
				s := newHarness(t)
				for _, known := range []int{0, 7} {
					s.runInEveryOrder(interleaving{levels: [2]string{level, level}, tokens: [2]int{7, 8}, ends: commits, known: known, fencedBy: way})
				}
			})
		}
	}
}

// runInEveryOrder executes p in every order and checks each outcome.
func (s *harness) runInEveryOrder(p interleaving) {
	s.Helper()
	for i, order := range orders(steps) {
		o := s.run(p, order, fmt.Sprintf("%s:%d:%t:%d", p.fencedBy, p.known, p.snapshot, i))
		if wrong := p.check(o); wrong != "" {
			s.Errorf("%s: %+v in the order %v: fenced %v, committed %v, errors %v", wrong, p, order, o.fenced, o.commits, o.errs)
		}
	}
}

// check returns what is wrong with the outcome of tokens 7 and 8, or an empty string. Above READ COMMITTED a
// transaction may fail with a serialization error instead of being refused, even the one with the greater token.
func (p interleaving) check(o outcome) string {
	for _, err := range o.errs {
		if state := sqlstate(err); err != nil && state != "PF001" && state != "40001" {
			return "an unexpected error"
		}
	}
	switch plain := p.levels == [2]string{levels[0], levels[0]}; {
	case p.committedOutOfOrder(o):
		return "7 was committed after 8"
	case len(o.commits) == 0:
		return "no transaction committed"
	case sqlstate(o.errs[1]) == "PF001":
		return "8 was refused as stale"
	case plain && o.errs[1] != nil:
		return "8 failed"
	case plain && (o.errs[0] == nil) != (o.fenced[0] == 0):
		return "the outcome of 7 does not follow the order at the fence"
	}
	return ""
}

// TestWithoutFenceToken7CommitsAfterToken8 proves that the other tests can fail.
func TestWithoutFenceToken7CommitsAfterToken8(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	p := interleaving{levels: [2]string{levels[0], levels[0]}, tokens: [2]int{7, 8}, ends: commits, fencedBy: byNothing}
	inverted := 0
	all := orders(steps)
	for i, order := range all {
		if p.committedOutOfOrder(s.run(p, order, fmt.Sprint(i))) {
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
		p := interleaving{levels: [2]string{levels[0], levels[0]}, tokens: [2]int{8, 8}, ends: commits, known: known, fencedBy: byFunction}
		for i, order := range orders(steps) {
			o := s.run(p, order, fmt.Sprintf("%d:%d", known, i))
			if len(o.commits) != 2 || o.commits[0] != o.fenced[0] {
				t.Errorf("known %d, order %v: fenced %v, committed %v, errors %v", known, order, o.fenced, o.commits, o.errs)
			}
		}
	}
}

// TestRolledBackTokenIsNotRecorded: 7 passes although 8 reached the fence first.
func TestRolledBackTokenIsNotRecorded(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	for _, known := range []int{0, 6} {
		p := interleaving{levels: [2]string{levels[0], levels[0]}, tokens: [2]int{7, 8}, ends: [2]string{"commit", "rollback"}, known: known, fencedBy: byFunction}
		for i, order := range orders(steps) {
			if o := s.run(p, order, fmt.Sprintf("%d:%d", known, i)); len(o.commits) != 1 {
				t.Errorf("known %d, order %v: committed %v, errors %v", known, order, o.commits, o.errs)
			}
		}
	}
}
