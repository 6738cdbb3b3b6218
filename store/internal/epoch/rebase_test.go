package epoch

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A rebase is a lease before and after the start of an epoch. Before, instants count from the last known instant of
// the old clock; after, from the start of the epoch.
type rebase struct {
	acquired, expires, ttl, left, grace, maxHold, claimBy time.Duration // claimBy zero: claimed

	wantExpires  time.Duration
	wantAcquired time.Duration // zero: as before, but not in the future
}

var rebases = map[string]rebase{
	"active": {acquired: -10 * time.Second, expires: 50 * time.Second, ttl: time.Minute, wantExpires: time.Minute},
	"renewed with a shorter TTL": {acquired: -10 * time.Second, expires: 50 * time.Second, ttl: time.Second, left: 55 * time.Second,
		wantExpires: 55 * time.Second},
	"in grace":              {acquired: -70 * time.Second, expires: -5 * time.Second, ttl: time.Minute, grace: 10 * time.Second, wantExpires: time.Minute},
	"expired, not recorded": {acquired: -70 * time.Second, expires: 0, ttl: time.Minute, wantExpires: 0},
	"grace is over": {acquired: -70 * time.Second, expires: -10 * time.Second, ttl: time.Minute, grace: 10 * time.Second,
		wantExpires: -10 * time.Second},
	"revoked, in grace":      {acquired: -70 * time.Second, expires: -5 * time.Second, grace: 10 * time.Second, wantExpires: 0},
	"revoked, grace is over": {acquired: -70 * time.Second, expires: -10 * time.Second, grace: 10 * time.Second, wantExpires: -10 * time.Second},
	"max hold": {acquired: -90 * time.Second, expires: 30 * time.Second, ttl: time.Minute, maxHold: 2 * time.Minute,
		wantExpires: time.Minute, wantAcquired: -time.Minute},
	"unclaimed": {acquired: -time.Second, expires: 59 * time.Second, ttl: time.Minute, claimBy: time.Second, wantExpires: time.Minute},
}

// odd is metadata, as the column rest contains it, that jsonb would refuse or change if it were not a string.
const odd = `{"z": 1.0, "a": "\u0000 \ud800", "a": 1e1}`

func restWith(values map[string]any) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// rest returns the column rest of the lease.
func (r rebase) rest(last time.Time) *string {
	values := map[string]any{"place": 3, "metadata": odd}
	for key, d := range map[string]time.Duration{"left": r.left, "grace": r.grace, "max_hold": r.maxHold} {
		if d > 0 {
			values[key] = d.Milliseconds()
		}
	}
	if r.claimBy != 0 {
		values["claim_by"] = last.Add(r.claimBy).UnixMicro()
	}
	text := restWith(values)
	return &text
}

const (
	insertRecord = `insert into paddock.records (name, mode, token, lease_id, holder, acquired_at, expires_at, ttl_ms, rest, changed_at)
		values ($1, 1, 7, gen_random_uuid(), 'h', $2, $3, $4, $5, $2)`
	insertPart = `insert into paddock.parts
		(name, slot, place, mode, token, lease_id, holder, attachment, acquired_at, expires_at, ttl_ms, rest, unclaimed)
		values ($1, $2, $3, 2, 7, gen_random_uuid(), 'h', 1, $4, $5, $6, $7, $8)`
	insertBare = `insert into paddock.records (name, parts, changed_at) values ($1, $2, $3)`
)

// A lease is what a test reads of one.
type lease struct {
	Acquired, Expires time.Time
	Rest              map[string]any
}

func (h *harness) lease(sql, name string) (l lease) {
	h.Helper()
	var rest []byte
	if err := h.outside.QueryRow(h.Context(), sql, name).Scan(&l.Acquired, &l.Expires, &rest); err != nil {
		h.Fatalf("%s: %v", name, err)
	}
	if err := json.Unmarshal(rest, &l.Rest); err != nil {
		h.Fatal(err)
	}
	return l
}

// check compares a lease of the new epoch with the one before.
func (r rebase) check(t *testing.T, before, after lease, began time.Time) {
	t.Helper()
	wantAcquired := before.Acquired
	if wantAcquired.After(began) {
		wantAcquired = began
	}
	if r.wantAcquired != 0 {
		wantAcquired = began.Add(r.wantAcquired)
	}
	if !after.Acquired.Equal(wantAcquired) {
		t.Errorf("acquired at %v, want %v; the epoch began at %v", after.Acquired, wantAcquired, began)
	}
	if !after.Expires.Equal(began.Add(r.wantExpires)) {
		t.Errorf("expires %v after the start of the epoch, want %v", after.Expires.Sub(began), r.wantExpires)
	}
	wantRest := maps.Clone(before.Rest)
	if r.claimBy != 0 {
		wantRest["claim_by"] = float64(began.UnixMicro())
	}
	if !maps.Equal(after.Rest, wantRest) {
		t.Errorf("the rest is %v, want %v", after.Rest, wantRest)
	}
}

// TestLeasesAreMovedToTheNewClock: the old clock was an hour off.
func TestLeasesAreMovedToTheNewClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"the old clock was ahead": time.Hour, "the old clock was behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			last := h.read().Now.Add(off)
			h.exec("insert into paddock.event_batches (id, at, entries) values (1, $1, '{}'), (2, $2, '{}')",
				last.Add(time.Hour), last)
			const inRecord = "select acquired_at, expires_at, rest from paddock.records where name = $1"
			const inPart = "select acquired_at, expires_at, rest from paddock.parts where name = $1"
			before := make(map[string]lease)
			for name, r := range rebases {
				acquired, expires := last.Add(r.acquired), last.Add(r.expires)
				h.exec(insertRecord, "record:"+name, acquired, expires, r.ttl.Milliseconds(), r.rest(last))
				h.exec(insertBare, "part:"+name, 1, acquired)
				h.exec(insertPart, "part:"+name, 1, 0, acquired, expires, r.ttl.Milliseconds(), r.rest(last), false)
				before[name] = h.lease(inRecord, "record:"+name)
			}
			h.recover()
			began := h.began()
			for name, r := range rebases {
				t.Run(name, func(t *testing.T) {
					r.check(t, before[name], h.lease(inRecord, "record:"+name), began)
					r.check(t, before[name], h.lease(inPart, "part:"+name), began)
				})
			}
			if n := h.number("select count(*) from paddock.records where changed_at > $1", began); n != 0 {
				t.Errorf("%d locks have changed in the future", n)
			}
		})
	}
}

func (h *harness) began() (at time.Time) {
	h.Helper()
	if err := h.outside.QueryRow(h.Context(), "select began_at from paddock.epochs order by epoch desc limit 1").Scan(&at); err != nil {
		h.Fatal(err)
	}
	return at
}

func TestWaitersAreMovedToTheNewClock(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	last := h.read().Now.Add(time.Hour)
	rest := restWith(map[string]any{
		"capacity": 3, "grace": 500, "metadata": odd,
		"alive_until": last.Add(time.Second).UnixMicro(), "kept_until": last.Add(30 * time.Second).UnixMicro(),
	})
	h.exec(insertBare, "a", 2, last)
	h.exec(insertPart, "a", 0, 5, last, last.Add(20*time.Second), 60000, rest, true)
	h.exec(insertPart, "a", 0, 6, last, last.Add(20*time.Second), 60000, nil, false)
	h.exec("insert into paddock.replicas values (1, $1, 2, false)", last)
	if err := Begin(t.Context(), h.url, "", "test", 0); err != nil {
		t.Fatal(err)
	}
	began := h.began()
	alive := began.Add(lock.ReplicaTTL)
	want := map[string]any{
		"alive_until": float64(alive.UnixMicro()), "kept_until": float64(began.Add(lock.MaxWait + lock.PlaceRetention).UnixMicro()),
	}
	for place, more := range map[int]map[string]any{5: {"capacity": 3.0, "grace": 500.0, "metadata": odd}, 6: {}} {
		l := h.lease(fmt.Sprintf("select acquired_at, expires_at, rest from paddock.parts where name = $1 and place = %d", place), "a")
		if !l.Acquired.Equal(began) || !l.Expires.Equal(began.Add(lock.MaxWait)) {
			t.Errorf("waiter %d joined at %v and waits until %v; the epoch began at %v", place, l.Acquired, l.Expires, began)
		}
		maps.Copy(more, want)
		if !maps.Equal(l.Rest, more) {
			t.Errorf("the rest of waiter %d is %v, want %v", place, l.Rest, more)
		}
	}
	if n := h.number("select count(*) from paddock.parts where unclaimed"); n != 0 {
		t.Errorf("%d waiters have an unclaimed grant", n)
	}
	if n := h.number("select count(*) from paddock.replicas where alive_until = $1", alive); n != 1 {
		t.Error("the replica does not count as alive from now on")
	}
}

// TestChangedLocksHaveAnotherVersion: what was read of a lock before the epoch cannot be swapped in.
func TestChangedLocksHaveAnotherVersion(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	now := h.read().Now
	h.exec(insertRecord, "held", now, now.Add(time.Minute), 60000, nil)
	h.exec(insertBare, "shared", 1, now)
	h.exec(insertPart, "shared", 1, 0, now, now.Add(time.Minute), 60000, nil, false)
	h.exec(insertBare, "waited for", 1, now)
	h.exec(insertPart, "waited for", 0, 1, now, now.Add(time.Minute), 60000, nil, false)
	h.exec(insertBare, "changed in the future", 0, now.Add(time.Hour))
	h.exec(insertBare, "free", 0, now)
	versions := h.versions()
	h.recover()
	for name, after := range h.versions() {
		if changed := after != versions[name]; changed != (name != "free") {
			t.Errorf("the lock %q has another version: %t", name, changed)
		}
	}
	const halves = `select count(*) from paddock.records
		where lease_id is null and (acquired_at is not null or expires_at is not null)`
	if n := h.number(halves); n != 0 {
		t.Errorf("%d free locks have got parts of a lease", n)
	}
}

// versions returns the version of each lock.
func (h *harness) versions() map[string]uint32 {
	h.Helper()
	all := make(map[string]uint32)
	rows, err := h.outside.Query(h.Context(), "select name, xmin::text::bigint from paddock.records")
	if err != nil {
		h.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var version int64
		if err := rows.Scan(&name, &version); err != nil {
			h.Fatal(err)
		}
		all[name] = uint32(version)
	}
	if err := rows.Err(); err != nil {
		h.Fatal(err)
	}
	return all
}
