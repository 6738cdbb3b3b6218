package fencing_test

import "testing"

// TestRollbackToSavepointMayUndoTheFence: a transaction that rolls back to before the
// fence has not passed it, and its later writes are not guarded.
func TestRollbackToSavepointMayUndoTheFence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known, before string
		keeps         bool
	}{
		"the fence after the savepoint":         {"", "begin; savepoint s; select paddock_fence('r', 7); rollback to s", false},
		"the fence before the savepoint":        {"", "begin; select paddock_fence('r', 7); savepoint s; rollback to s", true},
		"before it, and the token seen already": {"7", "begin; select paddock_fence('r', 7); savepoint s; rollback to s", true},
		"before it, and once more after it": {
			"7", "begin; select paddock_fence('r', 7); savepoint s; select paddock_fence('r', 7); rollback to s", true,
		},
		"before it, and a greater token after it": {
			"7", "begin; select paddock_fence('r', 7); savepoint s; select paddock_fence('r', 8); rollback to s", true,
		},
		"after it, and the savepoint released": {"", "begin; savepoint s; select paddock_fence('r', 7); release s", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t)
			if c.known != "" {
				must(t, s.watch, "select paddock_fence('r', "+c.known+")")
			}
			first, second := s.sessions[0], s.sessions[1]
			first.start(c.before)
			first.mustEnd("up to the savepoint", "")
			second.start("select paddock_fence('r', 8)")
			if !c.keeps {
				second.mustEnd("the other's fence", "")
				return
			}
			second.mustWait("the other's fence")
			first.start("commit")
			first.mustEnd("the commit", "")
			second.mustEnd("the other's fence", "")
		})
	}
}

func TestStaleTokenIsRefusedAgainAfterASavepoint(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	must(t, conn, "select paddock_fence_guard('accounts', 'r'), paddock_fence('r', 8)")
	must(t, conn, "begin; set local paddock.token = '7'; savepoint s")
	if err := run(t.Context(), conn, "delete from accounts"); sqlstate(err) != "PF001" {
		t.Errorf("a stale token: %v", err)
	}
	must(t, conn, "rollback to s")
	refused(t, conn, "PF001", "delete from accounts")
}
