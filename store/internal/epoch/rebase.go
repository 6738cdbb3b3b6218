package epoch

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
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

// QueueRaise queues the statement after which tokens and events are above those of the batch. Nothing may be decided
// beside it.
func QueueRaise(b *pgx.Batch, in schema.Name, batch int64) { b.Queue(sqlJump.In(in), batch, int64(0)) }

// QueueLongest queues the statement that records that leases of the length, grace included, may have been granted.
func QueueLongest(b *pgx.Batch, in schema.Name, length time.Duration) {
	b.Queue(sqlRaiseLongest.In(in), length.Milliseconds())
}
