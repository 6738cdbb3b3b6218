package expiry

import (
	"context"
	"embed"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// chunkSize is how many locks are read at a time.
	chunkSize = 5000
	// chunkRest is the mean rest between two chunks. To read one takes PostgreSQL some 10 ms of a core, so the scan takes
	// less than 0.5 % of a core, however many locks there are.
	chunkRest = 3 * time.Second
	// horizon is how long before its end a pass with rests sets the timer of a lock. It is longer than a pass over five
	// million locks, so one of the next passes sets that of any other lock.
	horizon = time.Hour
	// always is a horizon for all locks.
	always = time.Duration(math.MaxInt64)
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlScan  = database.Statement(files, "scan")
	sqlPrune = database.Statement(files, "prune")
)

// ScanSoon makes Scan read all locks without resting, since some may have an end that no timer of a living replica
// knows. It does not block.
func (t *Timers) ScanSoon() {
	select {
	case t.urgent <- struct{}{}:
	default:
	}
}

// Scan reads all locks again and again until the database is stopped, the first time and after ScanSoon without
// resting. It sets timers for those that time will change, in a pass with rests only if that is soon, and deletes those
// that have been free for longer than idleRetention. A chunk that could not be read is read again.
func (t *Timers) Scan(idleRetention time.Duration) {
	counted, after := new(LockCounts), ""
	for urgent := 1; ; { // passes without rests
		began, wasUrgent, within := time.Now(), urgent > 0, horizon
		if wasUrgent {
			within = always
		}
		next, err := t.scanChunk(after, within, idleRetention, counted)
		t.db.Report("scan", err)
		if next == "" {
			if err == nil {
				urgent = max(urgent-1, 0)
				counted.At = time.Now()
				t.counts.Store(counted)
			}
			counted = new(LockCounts)
		}
		after = next
		rest, wake := database.Jittered(chunkRest), t.urgent
		switch {
		case err != nil:
			rest = database.MaxPause
		case urgent > 0:
			rest = time.Since(began) // so that half of a core is left
		case wasUrgent: // locks whose sweeps fail each time must not make it scan all the time
			rest, wake = database.MaxPause, nil
		}
		select {
		case <-time.After(rest):
		case <-wake:
			urgent = 2 // the rest of this pass, and a whole one
		case <-t.db.Context().Done():
			return
		}
	}
}

// scanChunk reads the locks after the name, counts them, sets timers for those that time will change within a time, and
// deletes the idle ones. It returns the name after which to continue: empty at the end, and after itself if it could not
// read.
func (t *Timers) scanChunk(after string, within, idleRetention time.Duration, counted *LockCounts) (next string, err error) {
	next = after
	err = t.db.Unhurried(func(ctx context.Context) error {
		var read chunk
		b := &pgx.Batch{}
		database.QueueNoJIT(b) // a long queue makes the planner expect much work
		b.Queue(sqlScan.In(t.db.Schema), after, chunkSize, idleRetention, within, epoch.OfSession).QueryRow(read.scan)
		if err := t.db.Rest.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		for i, name := range read.names {
			t.setSooner(name, read.at.Add(read.due[i].Sub(read.now)))
		}
		counted.add(read.LockCounts)
		next = ""
		if read.All == chunkSize {
			next = read.last
		}
		return t.prune(ctx, read.idle, idleRetention)
	})
	return next, err
}

// A chunk is what the scan reads at a time.
type chunk struct {
	LockCounts
	last  string      // name
	names []string    // of the locks that time will change soon
	due   []time.Time // when it will change them
	idle  []string
	now   time.Time // on the database's clock
	at    time.Time // the same instant, on this process's clock
}

// scan reads the columns of sql/scan.sql.
func (c *chunk) scan(row pgx.Row) error {
	c.at = time.Now()
	return row.Scan(&c.All, &c.last, &c.names, &c.due, &c.idle, &c.now,
		&c.Held, &c.InGrace, &c.Suspect, &c.Contended, &c.Waiters, &c.OldestWait, &c.OldestLease)
}

// prune deletes those of the locks that are still idle.
func (t *Timers) prune(ctx context.Context, names []string, idleRetention time.Duration) error {
	if len(names) == 0 {
		return nil
	}
	keys := make([]int64, len(names))
	for i, name := range names {
		keys[i] = row.NameKey(name)
	}
	_, err := t.db.Rest.Exec(ctx, sqlPrune.In(t.db.Schema), names, keys, idleRetention)
	return err
}

// LockCounts is what one pass of the scan has counted. It is not of one instant: a pass over 100,000 locks takes a
// minute.
type LockCounts struct {
	At        time.Time // when the pass ended, on this process's clock; zero: none has ended yet
	All       int64     // all that are kept, free ones too
	Held      int64
	InGrace   int64
	Suspect   int64 // these are not among those in the other states, whatever their other leases are
	Contended int64 // locks with waiters
	Waiters   int64 // one that waits for several locks counts once
	// OldestWait is how long the waiter that has waited longest has done so, and OldestLease the same of an active
	// lease.
	OldestWait, OldestLease time.Duration
}

// LockCounts returns what the last pass of the scan has counted.
func (t *Timers) LockCounts() LockCounts {
	if c := t.counts.Load(); c != nil {
		return *c
	}
	return LockCounts{}
}

func (c *LockCounts) add(o LockCounts) {
	c.All, c.Held, c.InGrace, c.Suspect = c.All+o.All, c.Held+o.Held, c.InGrace+o.InGrace, c.Suspect+o.Suspect
	c.Contended, c.Waiters = c.Contended+o.Contended, c.Waiters+o.Waiters
	c.OldestWait, c.OldestLease = max(c.OldestWait, o.OldestWait), max(c.OldestLease, o.OldestLease)
}
