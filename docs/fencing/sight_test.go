package fencing_test

import (
	"fmt"
	"testing"
)

// TestVisibilityAfterTheWait checks what README.md says of it. The holder of token 7
// has taken 10 of 200 and not yet committed; the holder of token 8 comes, waits,
// and writes down the sum.
func TestVisibilityAfterTheWait(t *testing.T) {
	t.Parallel()
	const (
		token = "set local paddock.token = '8'; "
		fence = token + "select paddock_fence('r', 8)"
		sum   = "insert into ledger select 'sum', sum(balance) from accounts"
	)
	for name, c := range map[string]struct {
		known               int
		level, first, later string
		state               string
		want                int64
	}{
		"the fence is a statement of its own": {7, levels[0], fence, sum, "", 190},
		"the first statement sums":            {7, levels[0], token + sum, "", "", 200},
		"the first statement updates": {
			7, levels[0], token + "update accounts set balance = balance - 20 where id = 1", sum, "", 170,
		},
		"repeatable read, where 7 was known before": {7, levels[1], fence, sum, "", 200},
		"repeatable read, and it updates the same row": {
			7, levels[1], fence, "update accounts set balance = 0 where id = 1", "40001", 0,
		},
		"repeatable read, where 7 was not known before": {6, levels[1], fence, "", "40001", 0},
		"serializable, where 7 was not known before":    {6, levels[2], fence, "", "40001", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t)
			must(t, s.watch, fmt.Sprintf("select paddock_fence('r', %d)", c.known))
			must(t, s.watch, "select paddock_fence_guard('ledger', 'r'), paddock_fence_guard('accounts', 'r')")
			seven, eight := s.sessions[0], s.sessions[1]
			seven.start("begin; set local paddock.token = '7'; update accounts set balance = balance - 10 where id = 1")
			seven.mustEnd("the write under token 7", "")
			eight.start("begin isolation level " + c.level + "; " + c.first)
			eight.mustWait("the write under token 8")
			seven.start("commit")
			seven.mustEnd("the commit", "")
			if eight.settle() && eight.err == nil {
				eight.start(c.later)
			}
			eight.mustEnd("what follows", c.state)
			if c.state != "" {
				return
			}
			eight.start("commit")
			eight.mustEnd("the other commit", "")
			if got := value[int64](t, s.watch, "select token from ledger"); got != c.want {
				t.Errorf("the sum was %d, want %d", got, c.want)
			}
		})
	}
}

// TestSerializableHoldersSeeCommittedWrites: two such transactions are as if one
// had come after the other, also where the token was known and no row of the fence
// was written.
func TestSerializableHoldersSeeCommittedWrites(t *testing.T) {
	t.Parallel()
	s := newHarness(t)
	must(t, s.watch, "select paddock_fence('r', 7)")
	seven, eight := s.sessions[0], s.sessions[1]
	seven.start(`begin isolation level serializable; select paddock_fence('r', 7);
		update accounts set balance = balance - 10 where id = 1`)
	seven.mustEnd("the write under token 7", "")
	eight.start("begin isolation level serializable; select paddock_fence('r', 8)")
	eight.mustWait("the fence")
	seven.start("commit")
	seven.mustEnd("the commit", "")
	if eight.settle() && eight.err == nil {
		eight.start("insert into ledger select 'sum', sum(balance) from accounts; commit")
	}
	eight.mustEnd("what follows", "40001")
}
