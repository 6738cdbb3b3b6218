package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestOldEventsArePrunedInBites asks for one bite after the other, as the pruning does.
func TestOldEventsArePrunedInBites(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for i := range 3 {
		if _, err := s.Acquire(t.Context(), lock.Acquire{Name: fmt.Sprintf("n:%d", i), Holder: "h"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(t.Context(), "update paddock.events set at = at - interval '2 hours' where name <> 'n:1'"); err != nil {
		t.Fatal(err)
	}
	last, n, err := s.pruneStretch(0, time.Hour)
	if err != nil || n != 2 {
		t.Errorf("pruned %d, %v; want the two old ones", n, err)
	}
	if _, n, err := s.pruneStretch(last, 0); err != nil || n != 1 {
		t.Errorf("then pruned %d after %d, %v; want the one between them, old by now", n, last, err)
	}
	if page, err := s.Events(t.Context(), lock.EventQuery{}); err != nil || len(page.Items) != 0 {
		t.Errorf("left %+v, %v", page.Items, err)
	}
}

// TestSettingsHoldInTheTransactionOnly: a grant is on disk before its token is
// shown, whatever the database's default is; and a stronger default stays.
func TestSettingsHoldInTheTransactionOnly(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	for set, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		if _, err := conn.Exec(t.Context(), "set synchronous_commit = "+set); err != nil {
			t.Fatal(err)
		}
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), sqlSettings, "250", true); err != nil {
			t.Fatal(err)
		}
		var inside, after string
		if err := tx.QueryRow(t.Context(), "show synchronous_commit").Scan(&inside); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), "show synchronous_commit").Scan(&after); err != nil {
			t.Fatal(err)
		}
		if inside != want || after != set {
			t.Errorf("%s: %s inside, %s after; want %s inside", set, inside, after, want)
		}
	}
}
