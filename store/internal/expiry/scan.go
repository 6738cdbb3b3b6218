package expiry

import (
	"context"
	"embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// chunkSize is how many locks are read at a time.
	chunkSize = 5000
	// restFactor is how many times as long as reading a chunk took the scan rests after it, on average.
	restFactor = 20
	// minRest is the least mean rest between two scans.
	minRest = 400 * time.Millisecond
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlScan  = database.Statement(files, "scan")
	sqlCount = database.Statement(files, "count")
	sqlPrune = database.Statement(files, "prune")
)

// Scan reads all locks again and again until the database is stopped. It sets timers for those that time will change,
// and deletes those that have been free for longer than idleRetention. A chunk that could not be read is read again.
func (t *Timers) Scan(idleRetention time.Duration) {
	counted, after := new(LockCounts), ""
	for {
		began := time.Now()
		next, err := t.scanChunk(after, idleRetention, counted)
		t.db.Report("scan", err)
		if next == "" {
			if err == nil {
				counted.At = time.Now()
				t.counts.Store(counted)
			}
			counted = new(LockCounts)
		}
		rest := restFactor * time.Since(began)
		if err != nil || next == "" {
			rest = max(rest, minRest)
		}
		after = next
		if !t.db.Sleep(database.Jittered(rest)) {
			return
		}
	}
}

// A scanned is a lock as sql/scan.sql returns it.
type scanned struct {
	Name  string
	DueMS *float64 // milliseconds until time may change it, nil for never
	Idle  bool
}

// scanChunk reads the locks after the name, counts them, sets timers for them, and deletes the idle ones. It returns
// the name after which to continue: empty at the end, and after itself if it could not read.
func (t *Timers) scanChunk(after string, idleRetention time.Duration, counted *LockCounts) (next string, err error) {
	next = after
	err = t.db.Unhurried(func(ctx context.Context) error {
		var locks []scanned
		var chunk LockCounts
		b := &pgx.Batch{}
		database.QueueNoJIT(b) // a long queue makes the planner expect much work from sql/count.sql
		b.Queue(sqlScan.In(t.db.Schema), after, chunkSize, idleRetention, epoch.OfSession).Query(func(rows pgx.Rows) (err error) {
			locks, err = pgx.CollectRows(rows, pgx.RowToStructByPos[scanned])
			return err
		})
		b.Queue(sqlCount.In(t.db.Schema), after, chunkSize).QueryRow(chunk.scan)
		if err := t.db.Rest.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		counted.add(chunk)
		next = ""
		if len(locks) == chunkSize {
			next = locks[chunkSize-1].Name
		}
		var idle []string
		for _, l := range locks {
			if l.DueMS != nil {
				t.setIfNone(l.Name, time.Now().Add(time.Duration(*l.DueMS*float64(time.Millisecond))))
			}
			if l.Idle {
				idle = append(idle, l.Name)
			}
		}
		return t.prune(ctx, idle, idleRetention)
	})
	return next, err
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

// LockCounts is what one pass of the scan has counted. It is not of one instant: a pass over a million locks takes a
// minute.
type LockCounts struct {
	At        time.Time // when the pass ended, on this process's clock; zero: none has ended yet
	All       int64     // all that are kept, free ones too
	Held      int64
	InGrace   int64
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

// scan reads the columns of sql/count.sql.
func (c *LockCounts) scan(row pgx.Row) error {
	return row.Scan(&c.All, &c.Held, &c.InGrace, &c.Contended, &c.Waiters, &c.OldestWait, &c.OldestLease)
}

func (c *LockCounts) add(o LockCounts) {
	c.All, c.Held, c.InGrace = c.All+o.All, c.Held+o.Held, c.InGrace+o.InGrace
	c.Contended, c.Waiters = c.Contended+o.Contended, c.Waiters+o.Waiters
	c.OldestWait, c.OldestLease = max(c.OldestWait, o.OldestWait), max(c.OldestLease, o.OldestLease)
}
