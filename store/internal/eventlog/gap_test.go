package eventlog

import (
	"strconv"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// beginEpoch starts an epoch.
func beginEpoch(t *testing.T, url string) {
	t.Helper()
	if err := epoch.Begin(t.Context(), url, "", "test", 0); err != nil {
		t.Fatal(err)
	}
}

// TestGapAfterAnEpoch loses the last events in a fail-over. Readers that were given them get a gap, readers that were
// not get none, and both get what happens afterwards.
func TestGapAfterAnEpoch(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := openAndRun(t, url), connect(t, url)
	first := commit(t, conn, granted("kept", "kept")...)
	kept := page(t, l, paddock.EventQuery{}).Next
	second := commit(t, conn, granted("lost", "lost")...)
	lost := page(t, l, paddock.EventQuery{}).Next

	waited := make(chan paddock.Page[lock.Event], 1)
	go func() {
		p, err := l.Page(t.Context(), paddock.EventQuery{Cursor: lost, Wait: lock.MaxWait}, nil)
		if err != nil {
			t.Error(err)
		}
		waited <- p
	}()
	until(t, "the subscriber waits", func() bool { last, _ := l.tail.position(); return last >= 0 })
	exec(t, conn, "begin")
	exec(t, conn, "delete from paddock.event_batches where id = $1", epoch.BatchOf(second[0].ID))
	exec(t, conn, "delete from paddock.records where name = 'lost'")
	exec(t, conn, "commit")
	beginEpoch(t, url)
	after := commit(t, conn, granted("new")...)
	if p := <-waited; !p.Gap || len(p.Items) == 0 {
		t.Errorf("a subscriber that was given lost events gets %+v; want a gap and what came after", p)
	}
	for cursor, gap := range map[string]bool{
		"": false, "0": false, kept: false, lost: true,
		strconv.FormatInt(first[0].ID, 10): false, strconv.FormatInt(first[1].ID, 10): false,
		strconv.FormatInt(second[0].ID, 10): true, strconv.FormatInt(after[0].ID, 10): false,
	} {
		p := page(t, l, paddock.EventQuery{Cursor: cursor, Names: []string{"new"}})
		if p.Gap != gap || len(p.Items) != 1 && cursor != strconv.FormatInt(after[0].ID, 10) {
			t.Errorf("a reader at %s gets %+v; want one event, and a gap: %t", cursor, p, gap)
		}
	}
}

// TestNoGapWithoutALoss has an epoch begin while subscribers and readers have all events before it.
func TestNoGapWithoutALoss(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := openAndRun(t, url), connect(t, url)
	last := commit(t, conn, granted("a", "a")...)[1]
	bound := page(t, l, paddock.EventQuery{}).Next
	cursors := []string{"", bound, strconv.FormatInt(last.ID, 10)}
	pages := make(chan paddock.Page[lock.Event], len(cursors))
	for _, cursor := range cursors[1:] {
		go func() {
			p, err := l.Page(t.Context(), paddock.EventQuery{Cursor: cursor, Wait: lock.MaxWait}, nil)
			if err != nil {
				t.Error(err)
			}
			pages <- p
		}()
	}
	until(t, "the subscribers wait", func() bool { last, _ := l.tail.position(); return last >= 0 })
	beginEpoch(t, url)
	commit(t, conn, granted("b")...)
	for range cursors[1:] {
		if p := <-pages; p.Gap || len(p.Items) != 1 {
			t.Errorf("a subscriber gets %+v", p)
		}
	}
	for _, cursor := range cursors {
		if p := page(t, l, paddock.EventQuery{Cursor: cursor}); p.Gap {
			t.Errorf("a reader at %q gets %+v", cursor, p)
		}
	}
}

// TestGapAfterPruning: only readers that have not read the newest pruned event get a gap.
func TestGapAfterPruning(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	old := commit(t, conn, granted("a", "b", "a")...)
	p := &pruner{Log: l, keep: time.Hour}
	exec(t, conn, "update paddock.event_batches set at = at - interval '2 hours'")
	commit(t, conn, granted("a")...)
	if _, err := p.pruneBatches(); err != nil {
		t.Fatal(err)
	}
	for i, e := range old {
		for _, names := range [][]string{nil, {"a"}, {"a", "b"}} {
			p := page(t, l, paddock.EventQuery{Cursor: strconv.FormatInt(e.ID, 10), Names: names})
			if gap := i < len(old)-1; p.Gap != gap || len(p.Items) != 1 {
				t.Errorf("a reader of %q after event %d of %d gets %+v", names, i, len(old), p)
			}
		}
	}
	if p := page(t, l, paddock.EventQuery{}); p.Gap || len(p.Items) != 1 {
		t.Errorf("a reader without a cursor gets %+v", p)
	}
}
