package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// tableLocks are the statements that lock more than rows. Decisions queue behind a statement that waits for a table
// which they use. Each says why they do not wait for long.
var tableLocks = map[string]string{
	"internal/policy/sql/lock_records.sql":       "waits for maxPatience at most: TestATreeHoldsUpNoDecision",
	"internal/epoch/sql/lock_epochs.sql":         "decisions only read that table: TestAnEpochHoldsUpNoDecision",
	"internal/cells/sql/lock_table_sessions.sql": "nothing is decided beside it, and it waits as long as ChangePlacement",
	"internal/cells/sql/step.sql":                "nothing is decided beside it: it runs once, in ChangePlacement",
	// These change tables of the user, and none of the schema paddock.
	"../docs/fencing/install.sql":   "has tables of its own",
	"../docs/fencing/uninstall.sql": "has tables of its own",
}

// locksTable finds statements that lock a table in a mode with which a decision conflicts. Those that begin an index
// or a vacuum are among them.
var locksTable = regexp.MustCompile(`(?i)\b(lock\s+table|truncate|alter\s|create\s|drop\s|reindex|cluster\b|vacuum|analyze|refresh|comment\s+on)`)

// TestTheseStatementsLockTables and no others: a new one needs a proof that decisions do not queue behind it.
func TestTheseStatementsLockTables(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"sql/*.sql", "internal/*/sql/*.sql", "../docs/fencing/*.sql"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no statements in %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	left := make(map[string]bool)
	for file := range tableLocks {
		left[file] = true
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var code []string
		for line := range strings.Lines(string(text)) {
			before, _, _ := strings.Cut(line, "--")
			code = append(code, before)
		}
		found := locksTable.FindString(strings.Join(code, ""))
		if _, known := tableLocks[file]; (found != "") != known {
			t.Errorf("%s: found %q, but in tableLocks: %t", file, found, known)
		}
		delete(left, file)
	}
	for file := range left {
		t.Errorf("%s is in tableLocks, and not there", file)
	}
}

// TestAnEpochHoldsUpNoDecision while it waits for another process that changes an epoch, and hardly any while it waits
// for a row.
func TestAnEpochHoldsUpNoDecision(t *testing.T) {
	t.Parallel()
	for held, statement := range map[string]string{
		"epochs": "lock table paddock.epochs in share row exclusive mode",
		"a row":  "select from paddock.records where name = 'z' for update",
	} {
		t.Run(held, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			s, outside, activity := open(t, url), connect(t, url), connect(t, url)
			g := mustAcquire(t, s, acquire("a"))
			mustAcquire(t, s, acquire("z"))
			exec(t, outside, "begin")
			exec(t, outside, statement)
			begun := make(chan error, 1)
			go func() { begun <- store.BeginEpoch(t.Context(), url, "", "for a test", 0) }()
			until(t, "it waits", func() bool { return waiting(t, activity) > 0 })
			began := time.Now()
			if _, err := s.Renew(t.Context(), lock.Renew{Locks: []string{g.Name}, LeaseID: g.ID}); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("a renewal took %v", took)
			}
			exec(t, outside, "rollback")
			if err := <-begun; err != nil {
				t.Logf("the epoch did not begin: %v", err)
			}
		})
	}
}
