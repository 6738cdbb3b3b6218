package epoch

import (
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// Names are the locks whose names are from one of First to the one of Beyond at the same place, exclusive.
type Names struct{ First, Beyond []string }

// AllNames are all locks. No name contains a byte of 0x7f or more.
var AllNames = Names{[]string{""}, []string{"\x7f"}}

// QueueRebase queues the statements that move the leases and waiters of the locks to the database's clock, which is past
// at: each lease has its whole TTL again from then on. last is the last known instant of the old clock. Sessions are moved
// apart.
func (n Names) QueueRebase(b *pgx.Batch, in schema.Name, at, last time.Time) {
	waitUntil, aliveUntil := at.Add(lock.MaxWait), at.Add(lock.ReplicaTTL)
	b.Queue(sqlRebaseRecords.In(in), at, at.UnixMicro(), OfSession, last, n.First, n.Beyond)
	b.Queue(sqlRebaseParts.In(in), at, at.UnixMicro(), waitUntil, aliveUntil.UnixMicro(),
		waitUntil.Add(lock.PlaceRetention).UnixMicro(), OfSession, last, n.First, n.Beyond)
}

var sqlMoveSessions = sessionsThat("s.ref = any ($5::bigint[])")

// sessionsThat returns the statement that moves the sessions of a condition to another clock.
func sessionsThat(which string) *schema.Statement {
	return schema.NewStatement(sync.OnceValue(func() string {
		return strings.Replace(database.Text(files, "rebase_sessions"), "{{.Which}}", which, 1)
	}))
}

// QueueRebaseSessions queues the statement that moves the sessions to the database's clock, as it is when the statement runs.
// From then on they have leases and places here, so an ended one is cleared once more, after these. One that was over by the
// old clock has its end recorded.
func QueueRebaseSessions(b *pgx.Batch, in schema.Name, refs []int64) {
	b.Queue(sqlMoveSessions.In(in), nil, int16(lock.Expired), int64(0), pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, refs)
}

// QueueRaise queues the statement after which tokens and events are above those of the batch. Nothing may be decided
// beside it.
func QueueRaise(b *pgx.Batch, in schema.Name, batch int64) { b.Queue(sqlJump.In(in), batch, int64(0)) }

// QueueLongest queues the statement that records that leases of the length, grace included, may have been granted.
func QueueLongest(b *pgx.Batch, in schema.Name, length time.Duration) {
	b.Queue(sqlRaiseLongest.In(in), length.Milliseconds())
}
