package epoch

import (
	"testing"
	"time"
)

// TestLeasesOutliveASecondChangeOfTheClock: the newest event may be one of a clock that was ahead of the one by which the
// leases end, since an epoch writes no event, and since batches come from other cells. It says nothing about the leases.
func TestLeasesOutliveASecondChangeOfTheClock(t *testing.T) {
	t.Parallel()
	for name, foreign := range map[string]func(h *harness){
		"there was no event in the epoch": func(h *harness) {
			h.draw(1)
			h.exec("insert into paddock.event_batches (id, at, entries) values (1, clock_timestamp() + '1 hour', '{}')")
			h.recover()
		},
		"the newest batch is of another cell": func(h *harness) {
			h.draw(2)
			h.event(1)
			h.exec("insert into paddock.event_batches (id, at, entries, moved) values (2, clock_timestamp() + '1 hour', '{}', true)")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			foreign(h)
			h.exec(insertRecord, "alone", h.read().Now, h.read().Now.Add(time.Minute), 60_000, nil)
			h.exec(insertBare, "shared", 1, h.read().Now)
			h.exec(insertPart, "shared", 1, 0, h.read().Now, h.read().Now.Add(time.Minute), 60_000, nil, false)
			h.exec(`insert into paddock.sessions (ref, id, holder, ttl_ms, grace_ms, opened_at, expires_at)
				values (1, gen_random_uuid(), 'h', 60000, 0, clock_timestamp(), clock_timestamp() + '1 minute')`)
			h.recover()
			end := h.began().Add(time.Minute)
			if n := h.number("select count(*) from (select expires_at from paddock.records where name = 'alone' "+
				"union all select expires_at from paddock.parts union all select expires_at from paddock.sessions) e where expires_at = $1", end); n != 3 {
				t.Errorf("%d of a lease, a shared lease and a session have their whole TTL", n)
			}
		})
	}
}

// recover starts the epoch of a server to which the database failed over.
func (h *harness) recover() {
	h.Helper()
	h.exec(failOver)
	if err := h.monitor.Recover(ErrChanged); err != nil {
		h.Fatal(err)
	}
}
