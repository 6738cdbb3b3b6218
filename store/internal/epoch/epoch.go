package epoch

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

//go:embed sql/*.sql
var files embed.FS

var sqlEpoch = database.Statement(files, "epoch")

const (
	// EventsPerBatch is the number of event ids of a row of paddock.event_batches: an event's id is that of its row
	// times EventsPerBatch, plus its number there.
	EventsPerBatch = 4096
	// TokensPerBatch is the number of tokens of such a row: the tokens that it grants are its id times TokensPerBatch,
	// plus 0, 1, ... At ten thousand commits a second lock.MaxToken is reached after a hundred years, and in a cell, where
	// the ids of rows step by placement.Step, after less than two.
	TokensPerBatch = lock.MaxTokens
)

// OfSession is the column expires_at of a session's lease: it has no end of its own. It is an instant, and not
// infinity, which no row may contain.
var OfSession = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// An Epoch is the newest epoch of the database, and the state of the server at the instant when it was read.
type Epoch struct {
	Now           time.Time // the database's clock, read by the same statement; UTC, in microseconds
	Started       time.Time // when the server started
	Number        int64     // grows with each epoch; at least 1
	ClosedUntil   time.Time // nothing is granted before; zero: no pause was set
	Longest       time.Duration
	Quorum        bool  // nothing is decided without a standby
	PolicyChanges int64 // how often the policy was changed in this epoch
	Here          bool  // it describes this server, and the present timeline of its log

	Flushed    int64 // the position up to which the server's log is on disk
	Replicates bool  // commits wait for standbys
	LastBatch  int64 // the last row of events whose id was drawn, zero for none. No row so far has a greater one
	// LastEvent is the greatest id that an event of a committed batch can have, at least the newest pruned one; zero
	// if there was none. It is the last id of a batch, so it may be greater than that of the newest event. To find out
	// whether an event is behind it compare the batches, as [Epoch.Check] does.
	LastEvent int64
}

// Queue queues the statement that reads the newest epoch into e when the batch runs. To check a decision queue it
// after the statement that reads or locks the rows.
func Queue(b *pgx.Batch, in schema.Name, e *Epoch) { b.Queue(sqlEpoch.In(in)).QueryRow(e.scan) }

// Read returns the newest epoch.
func Read(ctx context.Context, from interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, in schema.Name) (Epoch, error) {
	var e Epoch
	err := e.scan(from.QueryRow(ctx, sqlEpoch.In(in)))
	return e, err
}

// scan reads the columns of sql/epoch.sql.
func (e *Epoch) scan(row pgx.Row) error {
	var longestMS int64
	err := row.Scan(&e.Now, &e.Started, &e.Number, (*zeronull.Timestamptz)(&e.ClosedUntil), &longestMS, &e.Quorum,
		&e.PolicyChanges, &e.Here, &e.Flushed, &e.Replicates, &e.LastBatch, &e.LastEvent)
	if errors.Is(err, pgx.ErrNoRows) {
		return errNoEpoch
	}
	err = malformed(e.Number, err)
	e.Now, e.ClosedUntil, e.Longest = e.Now.UTC(), e.ClosedUntil.UTC(), fromMS(longestMS)
	return err
}

// malformed returns err, or a database.MalformedError if a column of the epoch cannot be read. The schema refuses such
// values, unless its constraints were dropped.
func malformed(number int64, err error) error {
	var column pgx.ScanArgError
	if !errors.As(err, &column) {
		return err
	}
	cause := fmt.Errorf("%s: %w", column.FieldName, column.Err)
	return &database.MalformedError{
		Table: "epochs", Key: fmt.Sprintf("epoch = %d", number), Cause: cause,
		Remedy: "Correct the row, and do not delete it; paddock epoch open sets closed_until of the newest epoch to null.",
	}
}

func fromMS(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

var (
	// ErrChanged is returned when the newest epoch is not about this database: Recover starts the next one.
	ErrChanged = errors.New("the database changed: it was failed over, restored or created again")
	// errRestored is an ErrChanged: the same server is at an earlier state.
	errRestored = fmt.Errorf("%w; its log ends before a position that a replica has seen", ErrChanged)
	// errEventsLost is an ErrChanged, too. Other applications write to the log, and may have moved its end beyond the
	// position that was seen. Lost tokens and events are certain signs even then.
	errEventsLost = fmt.Errorf("%w; it has lost events that a replica has seen", ErrChanged)
	// ErrLengthLost is returned when the newest epoch was started without knowledge of the longest lease, which the
	// database has lost and this process remembers: Recover extends the pause.
	ErrLengthLost = errors.New("the newest epoch records shorter leases than were granted")
	// errNoEpoch is returned when the table was emptied by hand.
	errNoEpoch = errors.New("the table epochs is empty; restore its newest row, or migrate down and up")
)

// A PolicyVersion says which trees, freezes and rules there are: those after some number of changes in an epoch. Package
// policy has them.
// The zero PolicyVersion is that of no epoch.
type PolicyVersion struct{ Epoch, Changes int64 }

// Before reports whether a change or an epoch lies between the two versions.
func (v PolicyVersion) Before(o PolicyVersion) bool {
	return v.Epoch < o.Epoch || v.Epoch == o.Epoch && v.Changes < o.Changes
}

// Policy returns the version of the policy when the epoch was read.
func (e Epoch) Policy() PolicyVersion {
	return PolicyVersion{Epoch: e.Number, Changes: e.PolicyChanges}
}

// Check returns nil if commands may be decided in this epoch. k must have been taken before e was read. The error is
// ErrChanged or ErrLengthLost, for Recover, or database.ErrNoStandby.
func (e Epoch) Check(k Known) error {
	switch {
	case !e.Here:
		return ErrChanged
	case e.Number < k.number, e.Number == k.number && e.Flushed < k.flushed:
		return errRestored
	case e.LastBatch < k.batch, e.Number == k.number && BatchOf(e.LastEvent) < BatchOf(k.event):
		return errEventsLost
	case e.Longest < k.longest:
		return ErrLengthLost
	case e.Quorum && !e.Replicates:
		return database.ErrNoStandby
	}
	return nil
}

// BatchOf returns the row of paddock.event_batches with the event.
func BatchOf(event int64) int64 { return event / EventsPerBatch }

// FirstToken returns the first token that the row grants.
func FirstToken(batch int64) lock.Token { return lock.Token(batch) * TokensPerBatch }

// A LongerError is returned for a lease that is longer than every lease before it. Recover records its length, after
// which the command can be decided again.
type LongerError struct{ Length time.Duration }

// Error describes the lease.
func (e *LongerError) Error() string {
	return fmt.Sprintf("a lease of %v is longer than any before; its length must be recorded first", e.Length)
}

// CheckLength returns a *LongerError unless a lease of that length, grace included, may be granted now: the length must
// be recorded first. If the lease were lost, grants would be paused for as long.
func (e Epoch) CheckLength(length time.Duration) error {
	if length > e.Longest {
		return &LongerError{length}
	}
	return nil
}

// LongestOf returns the greatest length, TTL and grace, of the leases that the decision grants or extends. Those that
// stay do not count: no pause lasts until they end.
func LongestOf(d lock.Decision) (longest time.Duration) {
	count := func(l *lock.Lease) {
		if !l.Stays {
			longest = max(longest, l.TTL+l.Grace)
		}
	}
	for i := range d.Leases {
		count(&d.Leases[i])
	}
	for i := range d.Promoted {
		count(&d.Promoted[i].Lease)
	}
	return longest
}

// A Known is what this process has seen of the database's epochs. The process survives a fail-over
// and a restore, so a Known shows whether the database has lost a part of its history. Take it before you read the
// epoch that you compare with it, see [Monitor.Known].
type Known struct {
	number  int64
	flushed int64         // in that epoch
	longest time.Duration // of the leases granted, as far as it was recorded
	batch   int64         // the greatest row of events that was seen, in any epoch
	// event is the greatest id of an event of that epoch that was seen. It shows what the sequence of rows does not:
	// after a crash PostgreSQL continues a sequence up to 32 values above the last one drawn.
	event int64
}

// CheckLength is [Epoch.CheckLength] for what is known before a transaction begins.
func (k Known) CheckLength(length time.Duration) error {
	return Epoch{Longest: k.longest}.CheckLength(length)
}
