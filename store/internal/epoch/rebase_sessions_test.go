package epoch

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestSessionsAreMovedToTheNewClock: an open one has its whole TTL again; so has one that is closed or revoked, since
// its leases count until each is ended, with the grace of a revocation. The old clock was an hour off.
func TestSessionsAreMovedToTheNewClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"the old clock was ahead": time.Hour, "the old clock was behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			last := h.read().Now.Add(off)
			h.exec("insert into paddock.event_batches (id, at, entries) values (1, $1, '{}')", last)
			for ref, s := range []struct {
				expires time.Duration
				ended   lock.Kind
				left    time.Duration
			}{{expires: 50 * time.Second}, {expires: -5 * time.Second}, {expires: -10 * time.Second}, {expires: time.Minute, ended: lock.Expired},
				{expires: time.Minute, ended: lock.Released}, {expires: time.Minute, ended: lock.Revoked}, {expires: -time.Minute, ended: lock.Revoked},
				{expires: 50 * time.Second, left: 90 * time.Second}} {
				h.exec(`insert into paddock.sessions (ref, id, holder, ttl_ms, grace_ms, opened_at, expires_at, ended, ended_at, left_ms)
					values ($1, gen_random_uuid(), 'h', 60000, 10000, $2, $3, $4, case when $4::smallint > 0 then $2::timestamptz end, $5)`,
					ref+1, last.Add(-time.Minute), last.Add(s.expires), s.ended, s.left.Milliseconds())
			}
			for _, maxHold := range []any{nil, restWith(map[string]any{"max_hold": 90_000})} {
				h.exec(insertRecord, rowName("a lease", maxHold), last.Add(-30*time.Second), OfSession, 60000, maxHold)
				h.exec(insertBare, rowName("a reader", maxHold), 1, last)
				h.exec(insertPart, rowName("a reader", maxHold), 1, 0, last.Add(-30*time.Second), OfSession, 60000, maxHold, false)
			}
			h.recover()
			began := h.began()
			for ref, want := range []time.Duration{
				time.Minute, time.Minute, -10 * time.Second, -10 * time.Second, time.Minute, time.Minute, -10 * time.Second, 90 * time.Second,
			} {
				var opened, expires time.Time
				err := h.outside.QueryRow(t.Context(), "select opened_at, expires_at from paddock.sessions where ref = $1", ref+1).Scan(&opened, &expires)
				if err != nil || opened.After(began) || expires.After(began.Add(want)) || want > 0 && !expires.Equal(began.Add(want)) {
					t.Errorf("session %d was opened at %v and ends at %v, want %v after %v; %v", ref+1, opened, expires, want, began, err)
				}
			}
			if n := h.number("select count(*) from paddock.sessions where revoked_leases = 1000000"); n != 8 {
				t.Errorf("%d of 8 sessions tell that they may have lost leases", n)
			}
			if n := h.number("select count(*) from paddock.sessions where ended > 0 and ended_at <= $1 or ended = 0 and ended_at is null", began); n != 8 {
				t.Errorf("%d of 8 sessions have a consistent end", n)
			}
			const moved = `select (select count(*) from paddock.records where expires_at = $1 and acquired_at = $2)
				+ (select count(*) from paddock.parts where expires_at = $1 and acquired_at = $2)`
			if n := h.number(moved, OfSession, began.Add(-30*time.Second)); n != 4 {
				t.Errorf("%d of 4 leases have kept the time that was used, and have no end of their own", n)
			}
		})
	}
}

func rowName(kind string, maxHold any) string {
	if maxHold != nil {
		return kind + " with a max hold"
	}
	return kind
}
