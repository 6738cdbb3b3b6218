package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// An epoch is a stretch of the history of the locks on one database server: a
// fail-over or a restore ends it. This is the newest, as a transaction read it once
// its rows were locked.
type epoch struct {
	number      int64
	closedUntil time.Time // nothing is granted before; zero: no such time
	longest     time.Duration
	quorum      bool // nothing is decided without a standby
	here        bool // it is about this server, and this line of its history

	flushed    int64 // how far the server's log is on disk
	replicates bool  // the server waits for standbys
	lastToken  int64 // the last that was drawn, before this transaction draws any
	lastEvent  int64 // the greatest id of an event that is committed
}

// scanEpoch reads the columns of sql/epoch.sql, behind what else there is.
func scanEpoch(row pgx.Row, ahead ...any) (epoch, error) {
	var e epoch
	var closedUntil *time.Time
	var longestMS int64
	err := row.Scan(append(ahead, &e.number, &closedUntil, &longestMS, &e.quorum, &e.here, &e.flushed, &e.replicates, &e.lastToken, &e.lastEvent)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, errNoEpoch
	}
	if closedUntil != nil {
		e.closedUntil = closedUntil.UTC()
	}
	e.longest = fromMS(longestMS)
	return e, err
}

var (
	// errAnother says that the database is not the one that the newest epoch is about.
	errAnother = errors.New("the database changed: it was failed over or restored")
	// errBack says that it is, and at an earlier state than was seen before.
	errBack = fmt.Errorf("%w: its log ends before a position that this replica has seen", errAnother)
	// errLost reports the same from tokens or events. They are certain signs; other applications may have moved the log
	// forward again.
	errLost = fmt.Errorf("%w: it has lost fencing tokens or events that this replica has seen", errAnother)
	// errShort says that it began without knowing how long leases were granted for: the
	// database has lost that, and this process remembers.
	errShort = errors.New("the newest epoch records shorter leases than were granted")
	// errNoStandby says that what is committed now would be on this server alone.
	errNoStandby = errors.New("synchronous_standby_names is empty, but the epoch requires a standby")
	// errNoEpoch says that somebody has emptied the table.
	errNoEpoch = errors.New("the table paddock.epochs is empty; restore its newest row, or migrate down and up")
)

// check returns an error unless commands may be decided in this epoch, given what
// was known before it was read.
func (e epoch) check(k known) error {
	switch {
	case !e.here:
		return errAnother
	case e.number < k.number, e.number == k.number && e.flushed < k.flushed:
		return errBack
	case e.lastToken < k.token, e.number == k.number && e.lastEvent < k.event:
		return errLost
	case e.longest < k.longest:
		return errShort
	case e.quorum && !e.replicates:
		return errNoStandby
	}
	return nil
}

// A longerError says that a lease is longer than any that was granted in the epoch.
type longerError struct{ length time.Duration }

func (e *longerError) Error() string {
	return fmt.Sprintf("a lease of %v is longer than any before, which is to be noted first", e.length)
}

// covers returns a longerError unless a lease of that length, grace included, can be
// granted as things stand: were it lost, it would be waited for as long.
func (e epoch) covers(length time.Duration) error {
	if length > e.longest {
		return &longerError{length}
	}
	return nil
}

// longestOf returns the length of the longest lease that the decision gave.
func longestOf(d lock.Decision) time.Duration {
	longest := d.Lease.TTL + d.Lease.Grace
	for i := range d.Promoted {
		longest = max(longest, d.Promoted[i].Lease.TTL+d.Promoted[i].Lease.Grace)
	}
	return longest
}

// A known is what this process has seen of the database's epochs. It outlives the
// database, and so tells when that has lost some of its history. What is compared with it
// must be read after it.
type known struct {
	number  int64
	flushed int64         // in that epoch
	longest time.Duration // of the leases granted, as far as it was noted
	token   int64         // the greatest that was granted here, or that was seen to be granted elsewhere
	// event is the greatest id of an event of that epoch that was seen. It finds what the token does not: after a crash
	// PostgreSQL goes on up to 32 values above the last that was drawn. The token is known as soon as it is granted.
	event int64
}

// covers returns a longerError if a call asks for a lease longer than any before. What
// it cannot see, a transaction does.
func (k known) covers(calls []*call) error {
	var longest time.Duration
	for _, c := range calls {
		if a, ok := c.Req.(acquireCall); ok {
			longest = max(longest, a.TTL+a.Grace)
		}
	}
	return epoch{longest: k.longest}.covers(longest)
}

// epochs is what is known, for all of a store.
type epochs struct {
	mu   sync.Mutex
	seen known
}

func (o *epochs) known() known {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// granted hears that leases of that length are granted from now on.
func (o *epochs) granted(longest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen.longest = max(o.seen.longest, longest)
}

// note hears of an epoch in which something was committed or seen: that token and that event at most.
func (o *epochs) note(e epoch, token, event int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen.token, o.seen.longest = max(o.seen.token, token), max(o.seen.longest, e.longest)
	switch {
	case e.number > o.seen.number:
		o.seen.number, o.seen.flushed, o.seen.event = e.number, e.flushed, max(e.lastEvent, event)
	case e.number == o.seen.number:
		o.seen.flushed, o.seen.event = max(o.seen.flushed, e.flushed), max(o.seen.event, e.lastEvent, event)
	}
}
