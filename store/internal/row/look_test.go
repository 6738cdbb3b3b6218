package row

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestTheLastTokenIsReadBeforeAnyIsDrawn: otherwise a look that draws many would hide that tokens were lost. The floor
// of a new lock is that token.
func TestTheLastTokenIsReadBeforeAnyIsDrawn(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	exec(t, conn, "select setval('paddock.fencing_tokens', 100)")
	for _, locks := range []bool{false, true} {
		exec(t, conn, "delete from paddock.records")
		v, err := Look{Names: []string{"new"}, Tokens: 10, Lock: locks}.Run(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "rollback")
		last := v.Epoch.LastToken
		if last == 0 || last%10 != 0 || v.Rows["new"].Floor != last || len(v.Tokens) != 10 || v.Tokens[0] != last+1 {
			t.Errorf("last token %d, tokens %v, floor %d; want 10 tokens above the last one, which is the floor",
				last, v.Tokens, v.Rows["new"].Floor)
		}
	}
}

// TestTokensDrawnForLaterMayBeFewer: at the end of the sequence, where those that are needed at once cannot be drawn.
func TestTokensDrawnForLaterMayBeFewer(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	exec(t, conn, "select setval('paddock.fencing_tokens', $1)", int64(lock.MaxToken)-3)
	v, err := Look{Names: []string{"a"}, Tokens: 1}.Run(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	s := &Swap{Now: v.Epoch.Now, Latest: v.Epoch.Now.Add(MaxLag), Epoch: v.Epoch, Draw: 64}
	s.Changes = []*Change{{Before: v.Rows["a"], After: v.Rows["a"].Record}}
	w, err := s.Run(t.Context(), conn)
	if err != nil || len(w.Tokens) != 2 || w.Tokens[1] != lock.MaxToken {
		t.Errorf("a swap has drawn %v, %v; want the last two", w.Tokens, err)
	}
	if tokens, err := Draw(t.Context(), conn, v.Epoch, 1); err == nil {
		t.Errorf("drawn %v after the last one", tokens)
	}
}

// TestReplicasCountAsAliveAfterAnOutage, those without a heartbeat too: a crash of PostgreSQL loses the newest ones.
func TestReplicasCountAsAliveAfterAnOutage(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	exec(t, conn, "insert into paddock.replicas values (1, now() - interval '1 minute', 1, false)")
	exec(t, conn, "insert into paddock.records (name, parts) values ('a', 3)")
	exec(t, conn, `insert into paddock.parts (name, slot, place, mode, ttl_ms, attachment, replica, acquired_at, expires_at, lease_id, holder)
		select 'a', 0, 1 + i, 1, 1000, i, i, now(), now(), gen_random_uuid(), 'h' from generate_series(0, 2) i`)
	for _, assumeAlive := range []time.Duration{0, time.Minute} {
		v, err := Look{Names: []string{"a"}, AssumeAlive: assumeAlive}.Run(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		only := Only("a")
		only.Queue = true
		r, err := only.ReadOne(t.Context(), conn, assumeAlive)
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
