package eventlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// TestOldBatchesArePruned, step by step, and no batch that is younger.
func TestOldBatchesArePruned(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	var young []lock.Event
	for i := range 3 {
		events := commit(t, conn, granted(fmt.Sprintf("n:%d", i))...)
		if i == 1 {
			young = events
		}
	}
	exec(t, conn, "update paddock.event_batches set at = at - interval '2 hours' where id <> $1", epoch.BatchOf(young[0].ID))
	p := &pruner{Log: l, keep: time.Hour}
	if more, err := p.pruneBatches(); more || err != nil {
		t.Errorf("more: %t, %v", more, err)
	}
	sameEvents(t, "left", page(t, l, paddock.EventQuery{}).Items, young)
	p.keep = 0
	if more, err := p.pruneBatches(); more || err != nil {
		t.Errorf("more: %t, %v", more, err)
	}
	sameEvents(t, "left at last", page(t, l, paddock.EventQuery{}).Items, nil)
}

// TestPruningGoesOnWhileThereAreOldBatches: a step deletes a bounded number of them.
func TestPruningGoesOnWhileThereAreOldBatches(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	longHistory(t, conn, 2*pruneBatches+10)
	p := &pruner{Log: l, keep: 0}
	for step, left := range []int64{pruneBatches + 10, 10, 0} {
		more, err := p.pruneBatches()
		n := number(t, conn, "select count(*) from paddock.event_batches")
		if err != nil || n != left || more != (left > 0) {
			t.Errorf("step %d leaves %d batches, more: %t, %v", step, n, more, err)
		}
	}
	if got, want := number(t, conn, "select pruned from paddock.horizon"), int64(2*pruneBatches+10)*4096+9; got != want {
		t.Errorf("event %d is recorded as pruned, want %d", got, want)
	}
}

// TestReferencesToPrunedEventsAreDeleted, page by page of their table, and no others.
func TestReferencesToPrunedEventsAreDeleted(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	const refs, pruned = 200_000, 150_000
	exec(t, conn, `insert into paddock.event_refs (key, id)
		select random() * 9e18, i from generate_series(1, $1::integer) i`, refs)
	exec(t, conn, "update paddock.horizon set pruned = $1", pruned)
	p := &pruner{Log: l}
	first, err := p.pruneRefs()
	if left := number(t, conn, "select count(*) from paddock.event_refs"); err != nil || !first || p.page != prunePages ||
		left <= refs-pruned || left == refs {
		t.Errorf("the first step leaves %d references, more: %t, %v; it ends at page %d", left, first, err, p.page)
	}
	if err := repeat(p.pruneRefs); err != nil {
		t.Fatal(err)
	}
	until(t, "all pages were read", func() bool {
		if p.page == 0 {
			return true
		}
		if _, err := p.pruneRefs(); err != nil {
			t.Fatal(err)
		}
		return false
	})
	if left := number(t, conn, "select count(*) from paddock.event_refs"); left != refs-pruned {
		t.Errorf("%d references are left, want %d", left, refs-pruned)
	}
	if least := number(t, conn, "select min(id) from paddock.event_refs"); least != pruned+1 {
		t.Errorf("the first reference is to event %d, want %d", least, pruned+1)
	}
}

// TestReferencesAreReadByThePage: a step reads its pages of the table and no others.
func TestReferencesAreReadByThePage(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	exec(t, conn, "insert into paddock.event_refs (key, id) select random() * 9e18, i from generate_series(1, 200000) i")
	for _, prepare := range []string{"select 1", "analyze paddock.event_refs"} {
		exec(t, conn, prepare)
		rows, err := conn.Query(t.Context(), "explain (costs off) "+sqlPruneRefs.In(""), 0, prunePages)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if text := strings.Join(lines, "\n"); err != nil || !strings.Contains(text, "Tid Range Scan on event_refs") {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
