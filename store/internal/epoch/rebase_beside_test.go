package epoch

import (
	"context"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// waitsForLock counts the sessions that wait for a lock of another.
const waitsForLock = `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

// TestARenewalBesideTheStartOfAnEpochKeepsItsEnd: an operator starts an epoch on a server whose replicas go on. The epoch
// waits for a row in which a replica then writes a renewal, so that is after the beginning of the epoch.
func TestARenewalBesideTheStartOfAnEpochKeepsItsEnd(t *testing.T) {
	t.Parallel()
	const insertSession = `insert into paddock.sessions (ref, id, holder, ttl_ms, grace_ms, opened_at, expires_at)
		values (1, gen_random_uuid(), 'h', 60000, 0, clock_timestamp(), clock_timestamp() + interval '1 minute')`
	for table, where := range map[string]string{"records": "name = 'a'", "parts": "name = 'b'", "sessions": "ref = 1"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			now := h.read().Now
			h.exec(insertRecord, "a", now, now.Add(time.Minute), 60_000, "{}")
			h.exec(insertBare, "b", 1, now)
			h.exec(insertPart, "b", 1, 0, now, now.Add(time.Minute), 60_000, "{}", false)
			h.exec(insertSession)
			replica, err := h.outside.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h.exec("select from paddock." + table + " where " + where + " for update")
			began := make(chan error, 1)
			go func() { began <- Begin(context.WithoutCancel(t.Context()), h.url, "", "beside a renewal", 0) }()
			beside := pgtest.Connect(t, h.url) // the transaction would go on seeing the first answer
			await.Until(t, "the epoch waits for the row", func() bool { return pgtest.Number(t, beside, waitsForLock) > 0 })
			var told time.Time
			if err := h.outside.QueryRow(t.Context(), "update paddock."+table+
				" set expires_at = clock_timestamp() + interval '1 minute' where "+where+" returning expires_at").Scan(&told); err != nil {
				t.Fatal(err)
			}
			if err := replica.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-began; err != nil {
				t.Fatal(err)
			}
			var end time.Time
			if err := h.outside.QueryRow(t.Context(), "select expires_at from paddock."+table+" where "+where).Scan(&end); err != nil {
				t.Fatal(err)
			}
			if !end.Equal(told) {
				t.Errorf("the holder was told %v, and the epoch moved that by %v", told, end.Sub(told))
			}
		})
	}
}
