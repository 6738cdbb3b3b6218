package fencing_test

import (
	"fmt"
	"slices"
)

// How a token reaches the fence.
const (
	byFunction = "function" // select paddock_fence(…)
	byTrigger  = "trigger"  // set local paddock.token, and the table is guarded
	byArray    = "array"    // select paddock_fence(array[…]), with the resources in different orders
	byNothing  = "nothing"  // to show what the fence prevents
)

// An interleaving is two transactions on one resource, each of four steps: begin, fence, write, and an end.
type interleaving struct {
	levels   [2]string
	tokens   [2]int
	ends     [2]string // commit or rollback
	known    int       // the greatest token that the resource has seen; zero for none
	snapshot bool      // the first statement takes an early snapshot
	fencedBy string
}

// steps is the number of steps of a transaction.
const steps = 4

func (p interleaving) step(session, n int, resource string) string {
	switch n {
	case 0:
		sql := "begin isolation level " + p.levels[session]
		if p.fencedBy == byTrigger {
			sql += fmt.Sprintf("; set local paddock.token = '%d'", p.tokens[session])
		}
		if p.snapshot {
			sql += "; select 1"
		}
		return sql
	case 1:
		if p.fencedBy == byFunction {
			return fmt.Sprintf("select paddock_fence('%s', %d)", resource, p.tokens[session])
		}
		if p.fencedBy == byArray {
			resources := [2]string{resource, resource + ":more"}
			return fmt.Sprintf("select paddock_fence(array['%s', '%s'], %d)", resources[session], resources[1-session], p.tokens[session])
		}
		return "select 1"
	case 2:
		return fmt.Sprintf("insert into ledger values ('%s', %d)", resource, p.tokens[session])
	default:
		return p.ends[session]
	}
}

// An outcome is the result of an interleaving.
type outcome struct {
	fenced  []int // sessions that reached the fence, in order
	commits []int // sessions that committed, in order
	errs    [2]error
}

// run executes the steps in the given order, which names the session of each step, and checks the ledger against the
// outcome. A session that waits is skipped and continues later; one that failed rolls back and does nothing more.
func (s *harness) run(p interleaving, order []int, resource string) (o outcome) {
	s.Helper()
	if p.known > 0 {
		must(s.T, s.observer, fmt.Sprintf("select paddock_fence('%s', %d)", resource, p.known))
	}
	if p.fencedBy == byTrigger {
		must(s.T, s.observer, fmt.Sprintf("select paddock_fence_guard('ledger', '%s')", resource))
	}
	next := [2]int{}
	for turns := slices.Clone(order); len(turns) > 0; turns = turns[1:] {
		session := turns[0]
		actor := s.sessions[session]
		if !actor.settle() {
			turns = append(turns, session)
			continue
		}
		if actor.err != nil {
			continue
		}
		if p.reachesFence(next[session]) {
			o.fenced = append(o.fenced, session)
		}
		last := next[session] == steps-1
		actor.begin(p.step(session, next[session], resource))
		next[session]++
		if last && actor.err == nil && p.ends[session] == "commit" {
			o.commits = append(o.commits, session)
		}
		s.rollBackFailed(&o)
	}
	s.rollBackFailed(&o)
	s.checkLedger(p, o, resource)
	return o
}

// reachesFence reports whether the step is the one that reaches the fence.
func (p interleaving) reachesFence(step int) bool {
	n := 2
	if p.fencedBy == byFunction || p.fencedBy == byArray {
		n = 1
	}
	return step == n
}

// rollBackFailed rolls back sessions whose step failed, and records the errors.
func (s *harness) rollBackFailed(o *outcome) {
	s.Helper()
	for session, actor := range s.sessions {
		if actor.settle() && actor.err != nil && o.errs[session] == nil {
			o.errs[session] = actor.err
			must(s.T, actor.conn, "rollback")
		}
	}
}

// checkLedger checks that exactly the committed sessions have written, and prepares the sessions for the next
// interleaving.
func (s *harness) checkLedger(p interleaving, o outcome, resource string) {
	s.Helper()
	var tokens []int
	for _, session := range o.commits {
		tokens = append(tokens, p.tokens[session])
	}
	slices.Sort(tokens)
	written := value[[]int](s.T, s.observer, "select coalesce(array_agg(token order by token), '{}') from ledger where resource = $1", resource)
	if !slices.Equal(tokens, written) {
		s.Errorf("%+v: committed were %v, written %v", p, tokens, written)
	}
	for _, actor := range s.sessions {
		actor.err = nil
	}
}

// committedOutOfOrder reports whether a lower token was committed after a greater one.
func (p interleaving) committedOutOfOrder(o outcome) bool {
	return len(o.commits) == 2 && p.tokens[o.commits[0]] > p.tokens[o.commits[1]]
}

// orders returns every order of n steps of session 0 and n of session 1.
func orders(n int) (all [][]int) {
	var extend func(order []int, left [2]int)
	extend = func(order []int, left [2]int) {
		if left == [2]int{} {
			all = append(all, slices.Clone(order))
		}
		for session := range left {
			if left[session] > 0 {
				rest := left
				rest[session]--
				extend(append(order, session), rest)
			}
		}
	}
	extend(nil, [2]int{n, n})
	return all
}
