package row

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestReplicasCountAsAliveAfterAnOutage, those without a heartbeat too: a crash of PostgreSQL loses the newest ones.
func TestReplicasCountAsAliveAfterAnOutage(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	exec(t, conn, "insert into paddock.replicas values (1, now() - interval '1 minute', 1, false)")
	exec(t, conn, "insert into paddock.records (name, parts) values ('a', 3)")
	exec(t, conn, `insert into paddock.parts (name, slot, place, mode, ttl_ms, attachment, replica, acquired_at, expires_at, lease_id, holder)
		select 'a', 0, 1 + i, 1, 1000, i, i, now(), now(), gen_random_uuid(), 'h' from generate_series(0, 2) i`)
	for _, assumeAlive := range []time.Duration{0, time.Minute} {
		v, err := Look{Names: []string{"a"}, Create: []string{"a"}, AssumeAlive: assumeAlive}.Run(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		only := Only("a")
		only.Queue = true
		r, err := only.ReadOne(t.Context(), conn, "", assumeAlive)
		if err != nil {
			t.Fatal(err)
		}
		for now, queue := range map[time.Time][]*lock.Waiter{v.Epoch.Now: v.Rows["a"].Record.Queue, r.Now: r.Record.Queue} {
			for _, w := range queue {
				if alive := now.Add(time.Second).Before(w.AliveUntil); alive != (assumeAlive > 0 && w.Replica != 0) || len(queue) != 3 {
					t.Errorf("with a assumeAlive of %v replica %d is alive until %v, now is %v", assumeAlive, w.Replica, w.AliveUntil, now)
				}
			}
		}
	}
}
