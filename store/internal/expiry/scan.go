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
	// chunkRest is the mean rest between two chunks. To read one takes some 10 ms of a core, so the scan takes less than
	// 0.5 % of a core, however many locks there are.
	chunkRest = 3 * time.Second
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlScan  = database.Statement(files, "scan")
	sqlCount = database.Statement(files, "count")
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
// resting. It sets timers for those that time will change, and deletes those that have been free for longer than
// idleRetention. A chunk that could not be read is read again.
func (t *Timers) Scan(idleRetention time.Duration) {
	counted, after := new(LockCounts), ""
	for urgent := 1; ; { // passes without rests
		began, wasUrgent := time.Now(), urgent > 0
		next, err := t.scanChunk(after, idleRetention, counted)
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

// scanChunk reads the locks after the name, counts them, sets timers for them, and deletes the idle ones. It returns
// the name after which to continue: empty at the end, and after itself if it could not read.
func (t *Timers) scanChunk(after string, idleRetention time.Duration, counted *LockCounts) (next string, err error) {
	next = after
	err = t.db.Unhurried(func(ctx context.Context) error {
		var began, now time.Time // the same instant, on this process's clock and on the database's
		var read int
		var last string
		var idle []string
		var chunk LockCounts
		b := &pgx.Batch{}
		database.QueueNoJIT(b) // a long queue makes the planner expect much work from sql/count.sql
		b.Queue("select clock_timestamp()").QueryRow(func(row pgx.Row) error {
			began = time.Now()
			return row.Scan(&now)
		})
		b.Queue(sqlScan.In(t.db.Schema), after, chunkSize, idleRetention, epoch.OfSession).Query(func(rows pgx.Rows) error {
			var due *time.Time
			var isIdle bool
			_, err := pgx.ForEachRow(rows, []any{&last, &due, &isIdle}, func() error {
				read++
				if due != nil {
					t.setSooner(last, began.Add(due.Sub(now)))
				}
				if isIdle {
					idle = append(idle, last)
				}
				return nil
			})
			return err
		})
		b.Queue(sqlCount.In(t.db.Schema), after, chunkSize).QueryRow(chunk.scan)
		if err := t.db.Rest.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		counted.add(chunk)
		next = ""
		if read == chunkSize {
			next = last
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

// LockCounts is what one pass of the scan has counted. It is not of one instant: a pass over 100,000 locks takes a
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
