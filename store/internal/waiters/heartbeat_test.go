package waiters

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestHeartbeatsTellWhatWaitsOnAReplica, and that it is alive.
func TestHeartbeatsTellWhatWaitsOnAReplica(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	e, conn := newEngine(), connect(t, url)
	a, b, idle := e.replica(t, url, noLimit), e.replica(t, url, noLimit), e.replica(t, url, noLimit)
	heartbeat := func(r *replica, watching bool) (gone bool) {
		t.Helper()
		exec(t, conn, "create temporary table if not exists began as select clock_timestamp() as at")
		gone, err := r.heartbeat(time.Now(), watching, describe())
		if err != nil {
			t.Fatal(err)
		}
		if n := number(t, conn, `select count(*) from paddock.replicas, began
			where alive_until between at and at + '1 h'
				and alive_until - $1::interval not between at and clock_timestamp()`, lock.ReplicaTTL); n != 0 {
			t.Errorf("a heartbeat does not last for %v", lock.ReplicaTTL)
		}
		exec(t, conn, "update paddock.replicas set alive_until = alive_until + interval '2 h'")
		return gone
	}
	for range 3 {
		if _, err := a.register(&lock.Acquire{Locks: lock.One("a")}); err != nil {
			t.Fatal(err)
		}
	}
	heartbeat(a, false)
	heartbeat(b, true)
	heartbeat(a, false)
	heartbeat(idle, false)
	if n := number(t, conn, "select count(*) from paddock.replicas"); n != 3 {
		t.Errorf("%d replicas have sent heartbeats", n)
	}
	for r, want := range map[*replica]struct {
		remote  int64
		watched bool
	}{a: {0, true}, b: {3, false}, idle: {3, true}} {
		if r.remote.Load() != want.remote || r.watched.Load() != want.watched {
			t.Errorf("replica %d found %d calls and subscribers %t, want %+v", r.self, r.remote.Load(), r.watched.Load(), want)
		}
	}
	if heartbeat(idle, false) {
		t.Error("a replica has gone, although all of them are alive")
	}
	exec(t, conn, "update paddock.replicas set alive_until = now() - interval '9 h' where id = $1", int64(a.self))
	if !heartbeat(idle, false) {
		t.Error("a replica that died is not missed")
	}
	exec(t, conn, "delete from paddock.replicas where id = $1", int64(b.self))
	if !heartbeat(idle, false) {
		t.Error("a replica that stopped is not missed")
	}
	if heartbeat(idle, false) {
		t.Error("a replica is missed again and again")
	}
	if idle.remote.Load() != 0 || idle.watched.Load() {
		t.Errorf("replicas that are gone have %d calls, subscribers %t", idle.remote.Load(), idle.watched.Load())
	}
}

// TestHeartbeatsWakeCallsThatNeedNotWait makes the rows of some queues by hand.
func TestHeartbeatsWakeCallsThatNeedNotWait(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, conn := newEngine().replica(t, url, noLimit), connect(t, url)
	const record = "insert into paddock.records (name, lease_id) values ($1, $2)"
	const part = `insert into paddock.parts
		(name, slot, place, attachment, unclaimed, mode, ttl_ms, acquired_at, expires_at, lease_id, holder)
		values ($1, $2, $3, $4, $5, 1, 1000, now(), now(), $6, 'h')`
	id := uuid.New()
	calls := make(map[string]*waitingCall)
	for _, name := range []string{"held", "read", "free", "granted", "gone", "taken over", "joining"} {
		c, err := r.register(&lock.Acquire{Locks: lock.One(name)})
		if err != nil {
			t.Fatal(err)
		}
		calls[name] = c
		if name != "joining" {
			c.joinAt(7, time.Now())
		}
		attachment := int64(c.attachment)
		if name == "taken over" {
			attachment++
		}
		if name == "free" || name == "read" {
			exec(t, conn, record, name, nil)
		} else {
			exec(t, conn, record, name, id)
		}
		if name != "gone" {
			exec(t, conn, part, name, 0, 7, attachment, name == "granted", id)
		}
	}
	exec(t, conn, part, "read", 1, 0, 0, false, id)
	woken := func() []string {
		names := slices.Collect(maps.Keys(calls))
		return slices.Sorted(slices.Values(slices.DeleteFunc(names, func(name string) bool {
			select {
			case <-calls[name].woken:
				return false
			default:
				return true
			}
		})))
	}
	// The longest pause after a search of half a second is no silence: all that wait would send a Claim.
	if _, err := r.heartbeat(time.Now().Add(-heartbeatInterval*3/2-time.Second/2), false, describe()); err != nil {
		t.Fatal(err)
	}
	if got, want := woken(), []string{"free", "gone", "granted", "taken over"}; !slices.Equal(got, want) {
		t.Errorf("woken are %q, want %q", got, want)
	}
	if _, err := r.heartbeat(time.Now().Add(-lock.ReplicaTTL), false, describe()); err != nil {
		t.Fatal(err)
	}
	if got := woken(); len(got) != len(calls) {
		t.Errorf("after a silence only %q are woken", got)
	}
}

// TestStaleWaitersAreLookedUpByKey in tables that PostgreSQL has never analyzed.
func TestStaleWaitersAreLookedUpByKey(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	exec(t, conn, "alter table paddock.records set (autovacuum_enabled = false)")
	exec(t, conn, "alter table paddock.parts set (autovacuum_enabled = false)")
	exec(t, conn, "insert into paddock.records (name) select 'a:' || i from generate_series(1, 5000) i")
	exec(t, conn, `insert into paddock.parts
		(name, slot, place, attachment, mode, ttl_ms, acquired_at, expires_at, lease_id, holder)
		select 'a', i % 2, i, 1, 1, 1, now(), now(), gen_random_uuid(), 'h' from generate_series(1, 5000) i`)
	exec(t, conn, "set plan_cache_mode = force_generic_plan")
	exec(t, conn, "prepare stale as "+sqlStaleWaiters.In(""))
	rows, err := conn.Query(t.Context(), "explain execute stale (null, null, null)")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if strings.Contains(plan, "Seq Scan") || strings.Count(plan, "Index Cond:") != 5 {
		t.Errorf("the plan is\n%s", plan)
	}
}

// TestAFailedHeartbeatIsAnOutage: the other replicas cannot send theirs either.
func TestAFailedHeartbeatIsAnOutage(t *testing.T) {
	t.Parallel()
	r := newEngine().replica(t, pgtest.URL(t), noLimit)
	r.db.Rest.Close()
	beats := 0
	r.sendHeartbeats(Hooks{Describe: describe, Watching: func() bool { return true }, Heartbeat: func() {
		beats++
		r.db.Stop()
	}})
	if left := r.db.Outage.AssumeAlive(); beats != 1 || left <= 0 {
		t.Errorf("%v of assumeAlive after %d heartbeats", left, beats)
	}
}

// TestDeadReplicasAreForgotten when one starts, and a replica forgets itself when it stops.
func TestDeadReplicasAreForgotten(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, conn := newEngine().replica(t, url, noLimit), connect(t, url)
	exec(t, conn, `insert into paddock.replicas (id, alive_until, waiting, watching) values
		(-1, clock_timestamp() - $1::interval - interval '1 s', 0, false),
		(-2, clock_timestamp(), 0, false)`, keepReplicas)
	r.forgetDead()
	r.sendHeartbeats(Hooks{Describe: describe, Watching: func() bool { return true }, Heartbeat: r.db.Stop})
	if n := number(t, conn, "select sum(id) from paddock.replicas"); n != int64(r.self)-2 {
		t.Errorf("the ids of the replicas that are left add up to %d", n)
	}
	r.Close()
	if n := number(t, conn, "select sum(id) from paddock.replicas"); n != -2 {
		t.Errorf("the ids of the replicas that are left add up to %d after Close", n)
	}
}

// TestHeartbeatsLeaveCallsBehindASetAlone: a free lock is kept for a set that waits for other locks, unless its
// replica is dead, its wait is over, or it is behind.
func TestHeartbeatsLeaveCallsBehindASetAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, conn := newEngine().replica(t, url, noLimit), connect(t, url)
	const part = `insert into paddock.parts
		(name, slot, place, attachment, replica, unclaimed, mode, ttl_ms, acquired_at, expires_at, lease_id, holder, rest)
		values ($1, 0, $2, $3, $4, false, 1, 1000, now(), now() + $5::interval, gen_random_uuid(), 'h', $6)`
	exec(t, conn, "insert into paddock.replicas (id, waiting, watching, alive_until) values (1, 1, false, now() + interval '1 h')")
	calls := make(map[string]*waitingCall)
	for name, set := range map[string]struct {
		place, attachment, replica int64
		wait                       time.Duration
	}{
		"reserved": {3, 5, 1, time.Hour}, "dead": {3, 5, 2, time.Hour}, "over": {3, 5, 1, -time.Second},
		"detached": {3, 0, 0, time.Hour}, "behind": {9, 5, 1, time.Hour},
	} {
		c, err := r.register(&lock.Acquire{Locks: lock.One(name)})
		if err != nil {
			t.Fatal(err)
		}
		calls[name] = c
		c.joinAt(7, time.Now())
		exec(t, conn, "insert into paddock.records (name) values ($1)", name)
		exec(t, conn, part, name, 7, int64(c.attachment), 1, time.Hour, nil)
		exec(t, conn, part, name, set.place, set.attachment, set.replica, set.wait, `{"set": "a `+name+`"}`)
	}
	if _, err := r.heartbeat(time.Now(), false, describe()); err != nil {
		t.Fatal(err)
	}
	for name, c := range calls {
		if woken := len(c.woken) > 0; woken == (name == "reserved") {
			t.Errorf("%s: woken is %t", name, woken)
		}
	}
}

// TestTheFirstSetAtEachLockIsWoken, among those that have joined their queues.
func TestTheFirstSetAtEachLockIsWoken(t *testing.T) {
	t.Parallel()
	r := newEngine().replica(t, pgtest.URL(t), noLimit)
	calls := make(map[string]*waitingCall)
	for name, c := range map[string]struct {
		locks []string
		place int64
	}{
		"first at a": {[]string{"a", "c"}, 2}, "second at a": {[]string{"a", "b"}, 3}, "joining": {[]string{"a", "b"}, 0},
		"first at b": {[]string{"b", "c"}, 9}, "alone": {[]string{"a"}, 1},
	} {
		a := lock.Acquire{}
		for _, one := range c.locks {
			a.Locks = append(a.Locks, lock.Member{Name: one})
		}
		var err error
		if calls[name], err = r.register(&a); err != nil {
			t.Fatal(err)
		}
		calls[name].joinAt(c.place, time.Now())
	}
	r.wakeSets()
	for name, c := range calls {
		if woken := len(c.woken) > 0; woken != strings.HasPrefix(name, "first") {
			t.Errorf("%s: woken is %t", name, woken)
		}
	}
}

// TestCallsAreWokenWhenAScopeThatConcernsThemHasChanged: one of a lock, of an ancestor, or of a lock below.
func TestCallsAreWokenWhenAScopeThatConcernsThemHasChanged(t *testing.T) {
	t.Parallel()
	for scope, want := range map[lock.Scope]bool{
		"tree:a:b": true, "tree:a:": true, "tree:": true, "tree:a": true, "tree": true, "tree:a:b:c": true, "tree:a:b:": true,
		"other": false, "tree:a:c": false, "tree:a:bc": false, "tree:x:": false,
	} {
		r := New(nil, 1, noLimit, nil)
		c, err := r.register(&lock.Acquire{Locks: lock.One("tree:a:b")})
		if err != nil {
			t.Fatal(err)
		}
		c.position.Store(&position{place: 1, names: []string{"tree", "tree:a", "tree:a:b"}})
		if r.WakeScopes([]lock.Scope{"unknown", scope}); len(c.woken) > 0 != want {
			t.Errorf("%s: woken is %t", scope, !want)
		}
	}
}

// joinAt records that the call waits at the place, or that it has not joined a queue if that is zero.
func (c *waitingCall) joinAt(place int64, at time.Time) {
	if place == 0 {
		return
	}
	out := &row.Outcome{Place: place, Began: at, JoinedAt: at, Decision: lock.Decision{Now: at}}
	for _, name := range c.locks {
		out.Locks = append(out.Locks, lock.Record{Name: name})
	}
	c.setPosition(out)
}
