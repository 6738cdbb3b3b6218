package fencing_test

import (
	"fmt"
	"slices"
)

// The ways for a token to get to the fence.
const (
	byFunction = "function" // select paddock_fence(…)
	byTrigger  = "trigger"  // set local paddock.token, and the table is guarded
	byNothing  = "nothing"  // to see what the fence prevents
)

// A schedule is two transactions of one resource, each of four steps: begin, fence,
// write, and an end.
type schedule struct {
	levels   [2]string
	tokens   [2]int
	ends     [2]string // commit or rollback
	known    int       // the greatest token that the resource has seen; zero for none
	snapshot bool      // a statement comes first, and takes an early snapshot
	way      string
}

// steps is how many there are in a transaction.
const steps = 4

func (p schedule) step(index, n int, resource string) string {
	switch n {
	case 0:
		sql := "begin isolation level " + p.levels[index]
		if p.way == byTrigger {
			sql += fmt.Sprintf("; set local paddock.token = '%d'", p.tokens[index])
		}
		if p.snapshot {
			sql += "; select 1"
		}
		return sql
	case 1:
		if p.way == byFunction {
			return fmt.Sprintf("select paddock_fence('%s', %d)", resource, p.tokens[index])
		}
		return "select 1"
	case 2:
		return fmt.Sprintf("insert into ledger values ('%s', %d)", resource, p.tokens[index])
	default:
		return p.ends[index]
	}
}

// An outcome is the result of a schedule.
type outcome struct {
	fenced  []int // the sessions that called the fence, in order
	commits []int // the sessions that committed, in order
	errs    [2]error
}

// execute runs the steps of both sessions in the given order of sessions, and checks that the ledger
// agrees with the outcome. The step of a session that waits is postponed; a session that has failed
// rolls back and takes no further step.
func (s *harness) execute(p schedule, order []int, resource string) (o outcome) {
	s.Helper()
	if p.known > 0 {
		must(s.T, s.watch, fmt.Sprintf("select paddock_fence('%s', %d)", resource, p.known))
	}
	if p.way == byTrigger {
		must(s.T, s.watch, fmt.Sprintf("select paddock_fence_guard('ledger', '%s')", resource))
	}
	next := [2]int{}
	for turns := slices.Clone(order); len(turns) > 0; turns = turns[1:] {
		index := turns[0]
		actor := s.sessions[index]
		if !actor.settle() {
			turns = append(turns, index)
			continue
		}
		if actor.err != nil {
			continue
		}
		if p.callsFence(next[index]) {
			o.fenced = append(o.fenced, index)
		}
		last := next[index] == steps-1
		actor.start(p.step(index, next[index], resource))
		next[index]++
		if last && actor.err == nil && p.ends[index] == "commit" {
			o.commits = append(o.commits, index)
		}
		s.rollBackFailed(&o)
	}
	s.rollBackFailed(&o)
	s.checkLedger(p, o, resource)
	return o
}

// callsFence reports whether the step calls the fence.
func (p schedule) callsFence(step int) bool {
	return step == 1 && p.way == byFunction || step == 2 && p.way != byFunction
}

// rollBackFailed rolls back the sessions whose step has failed, and records the error.
func (s *harness) rollBackFailed(o *outcome) {
	s.Helper()
	for index, actor := range s.sessions {
		if actor.settle() && actor.err != nil && o.errs[index] == nil {
			o.errs[index] = actor.err
			must(s.T, actor.conn, "rollback")
		}
	}
}

// checkLedger checks that the ledger has the writes of exactly the committed sessions, and
// prepares the sessions for the next schedule.
func (s *harness) checkLedger(p schedule, o outcome, resource string) {
	s.Helper()
	var tokens []int
	for _, index := range o.commits {
		tokens = append(tokens, p.tokens[index])
	}
	slices.Sort(tokens)
	written := value[[]int](s.T, s.watch,
		"select coalesce(array_agg(token order by token), '{}') from ledger where resource = $1", resource)
	if !slices.Equal(tokens, written) {
		s.Errorf("%+v: committed were %v, written %v", p, tokens, written)
	}
	for _, actor := range s.sessions {
		actor.err = nil
	}
}

// inverted reports whether a lower token was committed after a greater one.
func (p schedule) inverted(o outcome) bool {
	return len(o.commits) == 2 && p.tokens[o.commits[0]] > p.tokens[o.commits[1]]
}

// orders returns every order of n steps of session 0 and n of session 1.
func orders(n int) (all [][]int) {
	var extend func(order []int, left [2]int)
	extend = func(order []int, left [2]int) {
		if left == [2]int{} {
			all = append(all, slices.Clone(order))
		}
		for index := range left {
			if left[index] > 0 {
				rest := left
				rest[index]--
				extend(append(order, index), rest)
			}
		}
	}
	extend(nil, [2]int{n, n})
	return all
}
