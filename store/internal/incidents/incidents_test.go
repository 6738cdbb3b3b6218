package incidents

import (
	"log/slog"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func counterOn(t *testing.T, url string) *Counter {
	t.Helper()
	db, err := database.Open(t.Context(), database.At(url), "", false, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Stop(); db.Close() })
	return New(db)
}

// note counts a decision with events of these kinds.
func note(c *Counter, kinds ...lock.Kind) {
	var d lock.Decision
	for _, k := range kinds {
		d.Events = append(d.Events, lock.Event{Kind: k})
	}
	c.Note(&d)
}

func exchange(t *testing.T, c *Counter) {
	t.Helper()
	if err := c.exchange(); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, c *Counter, want Counts) {
	t.Helper()
	if got := c.LastHour(); got != want {
		t.Errorf("the counts are %+v, want %+v", got, want)
	}
}

// TestReplicasCountTogether: each sees its own incidents at once, and those of others after both have exchanged.
func TestReplicasCountTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b := counterOn(t, url), counterOn(t, url)
	note(a, lock.Granted, lock.Expired, lock.Granted)
	note(a, lock.Revoked, lock.Revoked)
	note(b, lock.Expired, lock.Refused)
	note(b, lock.Released, lock.Queued, lock.Dequeued, lock.Withdrawn, lock.MetadataUpdated)
	want(t, a, Counts{Expired: 1, Revoked: 2})
	want(t, b, Counts{Expired: 1, Refused: 1})
	for range 2 { // what was added is not added again
		exchange(t, a)
		exchange(t, b)
	}
	exchange(t, a)
	want(t, a, Counts{Expired: 2, Revoked: 2, Refused: 1})
	want(t, b, Counts{Expired: 2, Revoked: 2, Refused: 1})
	note(a, lock.Expired)
	want(t, a, Counts{Expired: 3, Revoked: 2, Refused: 1})
}

// TestOldIncidentsAreForgotten after an hour, and their rows are deleted.
func TestOldIncidentsAreForgotten(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	c, conn := counterOn(t, url), pgtest.Connect(t, url)
	pgtest.Exec(t, conn, `insert into paddock.incidents (minute, expired, revoked, refused)
		values (date_trunc('minute', now()) - interval '59 minutes', 1, 2, 3),
			(date_trunc('minute', now()) - interval '62 minutes', 40, 50, 60)`)
	exchange(t, c)
	want(t, c, Counts{Expired: 1, Revoked: 2, Refused: 3})
	var rows int
	if err := conn.QueryRow(t.Context(), "select count(*) from paddock.incidents").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows are left, %v, want 1", rows, err)
	}
}

// TestIncidentsWaitForTheDatabase: what could not be added is added later, once.
func TestIncidentsWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	c, conn := counterOn(t, url), pgtest.Connect(t, url)
	note(c, lock.Expired)
	pgtest.Exec(t, conn, "alter table paddock.incidents rename to away")
	if err := c.exchange(); err == nil {
		t.Error("added to a table that is away")
	}
	want(t, c, Counts{Expired: 1})
	pgtest.Exec(t, conn, "alter table paddock.away rename to incidents")
	exchange(t, c)
	want(t, c, Counts{Expired: 1})
	other := counterOn(t, url)
	exchange(t, other)
	want(t, other, Counts{Expired: 1})
}
