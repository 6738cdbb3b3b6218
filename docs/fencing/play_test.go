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

// A play is two transactions of one resource, each of four steps: begin, fence,
// write, and an end.
type play struct {
	levels   [2]string
	tokens   [2]int
	ends     [2]string // commit or rollback
	known    int       // the greatest token that the resource has seen; zero for none
	snapshot bool      // a statement comes first, and takes an early snapshot
	way      string
}

// steps is how many there are in a transaction.
const steps = 4

func (p play) step(who, n int, resource string) string {
	switch n {
	case 0:
		sql := "begin isolation level " + p.levels[who]
		if p.way == byTrigger {
			sql += fmt.Sprintf("; set local paddock.token = '%d'", p.tokens[who])
		}
		if p.snapshot {
			sql += "; select 1"
		}
		return sql
	case 1:
		if p.way == byFunction {
			return fmt.Sprintf("select paddock_fence('%s', %d)", resource, p.tokens[who])
		}
		return "select 1"
	case 2:
		return fmt.Sprintf("insert into ledger values ('%s', %d)", resource, p.tokens[who])
	default:
		return p.ends[who]
	}
}

// An outcome is what became of a play.
type outcome struct {
	fenced  []int // who began the step that meets the fence, in order
	commits []int // who committed, in order
	errs    [2]error
}

// act leads the sessions through the play in the order given, which names the
// session whose next step it is, and checks that the ledger says the same of it as
// the outcome. A session that waits misses its turn and catches up later; one that
// has failed rolls back and does nothing more.
func (s *stage) act(p play, order []int, resource string) (o outcome) {
	s.Helper()
	if p.known > 0 {
		must(s.T, s.watch, fmt.Sprintf("select paddock_fence('%s', %d)", resource, p.known))
	}
	if p.way == byTrigger {
		must(s.T, s.watch, fmt.Sprintf("select paddock_fence_guard('ledger', '%s')", resource))
	}
	next := [2]int{}
	for turns := slices.Clone(order); len(turns) > 0; turns = turns[1:] {
		who := turns[0]
		actor := s.sessions[who]
		if !actor.settle() {
			turns = append(turns, who)
			continue
		}
		if actor.err != nil {
			continue
		}
		if p.meets(next[who]) {
			o.fenced = append(o.fenced, who)
		}
		last := next[who] == steps-1
		actor.does(p.step(who, next[who], resource))
		next[who]++
		if last && actor.err == nil && p.ends[who] == "commit" {
			o.commits = append(o.commits, who)
		}
		s.clear(&o)
	}
	s.clear(&o)
	s.recorded(p, o, resource)
	return o
}

// meets is whether the step is the one that meets the fence.
func (p play) meets(step int) bool {
	return step == 1 && p.way == byFunction || step == 2 && p.way != byFunction
}

// clear has sessions whose step has failed roll back, and notes why.
func (s *stage) clear(o *outcome) {
	s.Helper()
	for who, actor := range s.sessions {
		if actor.settle() && actor.err != nil && o.errs[who] == nil {
			o.errs[who] = actor.err
			must(s.T, actor.conn, "rollback")
		}
	}
}

// recorded checks that those who committed, and nobody else, have written, and
// readies the sessions for the next play.
func (s *stage) recorded(p play, o outcome, resource string) {
	s.Helper()
	var tokens []int
	for _, who := range o.commits {
		tokens = append(tokens, p.tokens[who])
	}
	slices.Sort(tokens)
	written := value[[]int](s.T, s.watch, "select coalesce(array_agg(token order by token), '{}') from ledger where resource = $1", resource)
	if !slices.Equal(tokens, written) {
		s.Errorf("%+v: committed were %v, written %v", p, tokens, written)
	}
	for _, actor := range s.sessions {
		actor.err = nil
	}
}

// inverted is whether a lower token was committed after a greater one.
func (p play) inverted(o outcome) bool {
	return len(o.commits) == 2 && p.tokens[o.commits[0]] > p.tokens[o.commits[1]]
}

// orders returns every order of n steps of session 0 and n of session 1.
func orders(n int) (all [][]int) {
	var extend func(order []int, left [2]int)
	extend = func(order []int, left [2]int) {
		if left == [2]int{} {
			all = append(all, slices.Clone(order))
		}
		for who := range left {
			if left[who] > 0 {
				rest := left
				rest[who]--
				extend(append(order, who), rest)
			}
		}
	}
	extend(nil, [2]int{n, n})
	return all
}
