package verify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

const (
	treeRoot = "play:tree"
	branch   = "play:tree:a"
	leaf     = "play:tree:a:b"
	side     = "play:tree:c"
)

// useTree lets max hold a leaf while nan does not get the branch above it, ned waits for that, and ole later for the leaf. Then
// both are served, and readers hold locks at two levels. At last two tasks wait for each other, the one below what the other
// holds, and the other above what the one holds.
func (c *harness) useTree() {
	c.t.Helper()
	_, err := c.client("the operator").DeclareTree(c.t.Context(), treeRoot)
	c.want(nil, err)
	c.acquire("max", nil, lock.Acquire{Locks: lock.One(leaf)})
	c.acquire("nan", lock.ErrHeld, lock.Acquire{Locks: lock.One(branch)})
	c.waitWhile("ned", lock.Acquire{Locks: lock.One(branch)}, func() {
		c.waitWhile("ole", lock.Acquire{Locks: lock.One(leaf)}, func() {
			c.release("max")
			c.read(branch)
			c.release("ned")
		})
	})
	c.renew("ole", nil)
	c.release("ole")
	c.acquire("pam", nil, lock.Acquire{Locks: []lock.Member{{Name: branch, Mode: lock.Shared}}})
	c.acquire("quin", nil, lock.Acquire{Locks: []lock.Member{{Name: leaf, Mode: lock.Shared}}})
	c.read(treeRoot)
	c.release("pam")
	c.release("quin")
	c.acquire("rae", nil, ofTask("r", leaf, lock.Exclusive))
	c.acquire("sam", nil, ofTask("s", side, lock.Exclusive))
	c.waitWhile("rae again", ofTask("r.1", side+":d", lock.Exclusive), func() {
		c.inCircle("sam again", lock.ErrDeadlock, ofTask("s.1", branch, lock.Exclusive))
		c.release("sam")
	})
	c.release("rae again")
	c.release("rae")
	c.poll()
}

func TestLeasesAboveAndBelowEachOtherAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"the branch is granted over the leaf": {byTrees, func(s editable) {
			e := s.eventOn(branch, lock.Granted, "ned")
			e.At = s.eventOn(leaf, lock.Released, "max").At.Add(-100 * time.Millisecond)
		}, `"ned" was granted play:tree:a at`},
		"the leaf is granted under the branch": {byTrees, func(s editable) {
			e := s.eventOn(leaf, lock.Granted, "ole")
			e.At = s.eventOn(branch, lock.Released, "ned").At.Add(-time.Nanosecond)
		}, `"ole" was granted play:tree:a:b at`},
		"a token below is not greater than one above": {byTrees, func(s editable) {
			above := s.eventOn(branch, lock.Granted, "ned").Token
			for i := range s.Events {
				if e := &s.Events[i]; e.Name == leaf && e.Holder == "ole" && e.Token != 0 {
					e.Token = above
				}
			}
			for _, verb := range []verify.Verb{verify.Acquire, verify.Renew} {
				s.grant(verb, "ole", 0, func(g *lock.Grant) { g.Token = above })
			}
		}, `"ole" was granted play:tree:a:b with token`},
		"a call overtakes a waiter above": {byTrees, func(s editable) {
			e, last := s.eventOn(branch, lock.Granted, "ned"), s.Events[len(s.Events)-1]
			e.ID, e.At = last.ID+1, last.At.Add(time.Second)
		}, `although "ned" waited for play:tree:a`},
	})
}

// TestAWaiterThatMayBeAwayIsPassedInATree: a call of ned was told that the cell could not be used, as in a move that a
// killed command has left unfinished.
func TestAWaiterThatMayBeAwayIsPassedInATree(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		h := copyOf(recordCorrect(t))
		s := editable{t, &h}
		e, last := s.eventOn(branch, lock.Granted, "ned"), s.Events[len(s.Events)-1]
		e.ID, e.At = last.ID+1, last.At.Add(time.Second)
		if away {
			cut := *s.call(verify.Acquire, "ned", 0)
			refuse(&cut, lock.Error{Code: lock.ErrUnavailable})
			h.Calls = append(h.Calls, cut)
		}
		if found := strings.Contains(text(t, h.Check(verify.CheckOptions{})), `although "ned" waited for play:tree:a`); found == away {
			t.Errorf("away: %v, found: %v", away, found)
		}
	}
}

// TestALeaseBelowMayEndBeforeItsEvent: the keeper may find a lease at a leaf expired long after a decision about the
// branch did. If no answer said when it would end, it may have ended at once.
func TestALeaseBelowMayEndBeforeItsEvent(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{false, true} {
		h := copyOf(recordCorrect(t))
		s := editable{t, &h}
		ended, next := s.eventOn(leaf, lock.Released, "max"), s.eventOn(branch, lock.Granted, "ned")
		ended.Kind, ended.At = lock.Expired, next.At.Add(time.Second)
		if answered {
			s.grant(verify.Acquire, "max", 0, func(g *lock.Grant) { g.ExpiresAt = ended.At })
		} else {
			refuse(s.call(verify.Acquire, "max", 0), lock.Error{Code: lock.ErrUnknownOutcome})
		}
		r, found := h.Check(verify.CheckOptions{}), false
		for _, check := range r.Checks {
			found = found || check.Name == byTrees && len(check.Violations) > 0
		}
		if found != answered {
			t.Errorf("answered: %v, found: %v\n%s", answered, found, text(t, r))
		}
	}
}

// TestALeaseMayBeginAndEndBeforeAnotherBeginsInOneCommit: of a waiter whose caller has left, the lease is granted and
// withdrawn at once, and a lock above granted to the next one, all at one instant. The tokens tell the order.
func TestALeaseMayBeginAndEndBeforeAnotherBeginsInOneCommit(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		h := copyOf(recordCorrect(t))
		s := editable{t, &h}
		next := s.eventOn(branch, lock.Granted, "ned")
		refuse(s.call(verify.Acquire, "max", 0), lock.Error{Code: lock.ErrUnknownOutcome})
		for _, kind := range []lock.Kind{lock.Granted, lock.Released} {
			e := s.eventOn(leaf, kind, "max")
			if e.At = next.At; !first {
				e.Token = next.Token + 1
			}
		}
		found := false
		r := h.Check(verify.CheckOptions{AllowOvertaking: true})
		for _, check := range r.Checks {
			found = found || check.Name == byTrees && len(check.Violations) > 0
		}
		if found == first {
			t.Errorf("before the lease above: %v, found: %v\n%s", first, found, text(t, r))
		}
	}
}
