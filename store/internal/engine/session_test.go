package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestNothingIsDecidedInASessionBeforeItsEndIsRecorded: it is over by the clock since it was read, and a heartbeat that
// was decided in time may be being committed. So each call with its session_id is decided after another look. A
// recorded end is told.
func TestNothingIsDecidedInASessionBeforeItsEndIsRecorded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := lock.Session{ID: lock.SessionID(uuid.New()), Holder: "h", TTL: time.Second, ExpiresAt: now}
	ended := s
	ended.Ended, ended.EndedAt = lock.Expired, now
	id := lock.LeaseID(uuid.New())
	for what, cmd := range map[string]lock.Command{
		"acquire": lock.Acquire{Locks: []lock.Member{{Name: "a", Mode: lock.Exclusive}}, LeaseID: id, Holder: "h", SessionID: s.ID, GeneratedID: true},
		"claim":   lock.Claim{Locks: []string{"a"}, LeaseID: id, Attachment: 1, SessionID: s.ID},
		"leave":   lock.Leave{Locks: []string{"a"}, LeaseID: id, Attachment: 1, SessionID: s.ID},
	} {
		for _, c := range []struct {
			session lock.Session
			fresh   bool
			want    verdict
		}{{s, true, needsLook}, {ended, true, success}, {ended, false, needsLook}} {
			u := &unit{
				names: []string{"a"}, fresh: c.fresh, rows: []*row.Row{{Record: lock.Record{Name: "a"}}},
				calls: []*call{{Req: newRequest(cmd, &policy.Snapshot{})}},
			}
			in := &inputs{self: 1, now: now, sessions: row.Sessions{s.ID.Ref(): c.session}}
			if got := u.decide(in); got != c.want {
				t.Errorf("%s, read just now: %v, recorded: %v: the verdict is %d, want %d", what, c.fresh, c.session.Ended != 0, got, c.want)
			}
			if c.want == success && !errors.Is(u.outcomes[0].Err, lock.ErrSessionLost) {
				t.Errorf("%s: it is answered with %v", what, u.outcomes[0].Err)
			}
		}
	}
}
