package arch_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sqlWrite matches the part of a statement that changes a table, or draws from or sets a sequence.
var sqlWrite = regexp.MustCompile(`(?i)\b(?:(?:insert\s+into|update|delete\s+from|merge\s+into|truncate)\s+(?:table\s+|only\s+)?|(?:nextval|setval)\(\s*')paddock\.(\w+)`)

// TestOnlyTheKernelWritesLocks lists who changes each table on which a promise rests, and the sequence that tokens come
// from: whatever is wrong elsewhere, other code can grant, keep or end a lease only by a command. Migrations have rules
// of their own, see package migrations.
func TestOnlyTheKernelWritesLocks(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"records":         {"store/internal/row/", "store/internal/epoch/", "store/internal/expiry/sql/prune.sql", "store/internal/cells/"},
		"parts":           {"store/internal/row/", "store/internal/epoch/", "store/internal/cells/"},
		"epochs":          {"store/internal/epoch/", "store/internal/policy/"},
		"trees":           {"store/internal/policy/", "store/internal/cells/"},
		"freezes":         {"store/internal/policy/", "store/internal/cells/"},
		"rules":           {"store/internal/policy/", "store/internal/cells/"},
		"cells":           {"store/internal/cells/"},
		"placement":       {"store/internal/cells/", "store/internal/policy/sql/leave.sql"},
		"sessions":        {"store/internal/row/", "store/internal/epoch/", "store/internal/sessions/", "store/internal/cells/"},
		"replicas":        {"store/internal/epoch/", "store/internal/waiters/"},
		"event_batches":   {"store/internal/row/", "store/internal/eventlog/sql/prune_batches.sql", "store/internal/eventlog/sql/prune_moved.sql", "store/internal/cells/"},
		"event_refs":      {"store/internal/row/", "store/internal/expiry/sql/prune.sql", "store/internal/eventlog/sql/prune_refs.sql", "store/internal/cells/"},
		"event_batch_ids": {"store/internal/row/sql/swap.sql", "store/internal/epoch/sql/jump.sql", "store/internal/cells/sql/align.sql"},
		"horizon":         {"store/internal/eventlog/sql/prune_batches.sql"},
		"fenced":          {"store/sql/create_fenced.sql", "store/sql/save_fenced.sql", "store/internal/cells/"},
	}
	found := map[string]bool{}
	product := func(path, text string) {
		path = strings.ReplaceAll(path, `\`, "/")
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") || slices.ContainsFunc(
			[]string{"migrations/", "bench/", "test/", "internal/testkit/"},
			func(other string) bool { return strings.HasPrefix(path, other) },
		) {
			return
		}
		for _, w := range sqlWrite.FindAllStringSubmatch(text, -1) {
			folders, isKernel := allowed[w[1]]
			if !isKernel {
				continue
			}
			found[w[1]] = true
			if !slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(path, f) }) {
				t.Errorf("%s writes paddock.%s; only %v may", path, w[1], folders)
			}
		}
	}
	eachFile(t, ".sql", product)
	eachFile(t, ".go", product)
	if len(found) != len(allowed) {
		t.Errorf("found statements that write %v; want one for each of %v", found, allowed)
	}
}
