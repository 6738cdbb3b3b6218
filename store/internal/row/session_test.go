package row

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// TestNoEndOfASessionIsRecordedForAnotherEpoch, or another server: that the session is over was found there. After a
// fail-over it may have more time.
func TestNoEndOfASessionIsRecordedForAnotherEpoch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := lock.Session{ID: lock.SessionID(uuid.New()), Holder: "h", TTL: time.Second, OpenedAt: time.Now().Add(-time.Minute)}
	s.ExpiresAt = s.OpenedAt.Add(s.TTL)
	b, lost := &pgx.Batch{}, false
	QueueOpenSession(b, "", s, &lost)
	if err := f.conn.SendBatch(t.Context(), b).Close(); err != nil || lost {
		t.Fatal(lost, err)
	}
	f.exec(t, `insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, longest_ms)
		select coalesce(max(epoch), 0) + 1, clock_timestamp(), 1, 1, 'test', 1000 from paddock.epochs`)
	var e epoch.Epoch
	err := f.outside.QueryRow(t.Context(), "select pg_postmaster_start_time(), max(epoch) from paddock.epochs").Scan(&e.Started, &e.Number)
	if err != nil {
		t.Fatal(err)
	}
	another, restarted := e, e
	another.Number--
	restarted.Started = e.Started.Add(-time.Second)
	for _, c := range []struct {
		what string
		in   epoch.Epoch
		want bool
	}{{"another epoch", another, false}, {"another server", restarted, false}, {"this epoch", e, true}} {
		if err := ExpireSessions(t.Context(), f.conn, "", c.in, []lock.SessionRef{s.ID.Ref()}); err != nil {
			t.Fatal(err)
		}
		read, _, err := ReadSessions(t.Context(), f.conn, "", []lock.SessionRef{s.ID.Ref()})
		if err != nil {
			t.Fatal(err)
		}
		if recorded := read[s.ID.Ref()].Ended == lock.Expired; recorded != c.want {
			t.Errorf("of %s: the end is recorded: %v, want %v", c.what, recorded, c.want)
		}
	}
}
