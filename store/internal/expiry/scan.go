package expiry

import (
	"context"
	"embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/store/internal/database"
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
	sqlPrune = database.Statement(files, "prune")
)

// Scan reads all locks again and again until the database is stopped. It sets timers for those that time will change,
// and deletes those that have been free for longer than keepIdle. A chunk that could not be read is read again.
func (t *Timers) Scan(keepIdle time.Duration) {
	var trouble database.Trouble
	after := ""
	for {
		began := time.Now()
		next, err := t.scanChunk(after, keepIdle)
		t.db.Report(&trouble, "scan", err)
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

// scanChunk reads the locks after the name, and deletes the idle ones among them. It returns the name after which to
// continue: empty at the end, and after itself if it could not read.
func (t *Timers) scanChunk(after string, keepIdle time.Duration) (next string, err error) {
	var idle []string
	err = t.db.Within(func(ctx context.Context) error {
		next, idle, err = t.readChunk(ctx, after, keepIdle)
		return err
	})
	if err != nil {
		return after, err
	}
	if len(idle) > 0 {
		err = t.db.Within(func(ctx context.Context) error { return t.prune(ctx, idle, keepIdle) })
	}
	return next, err
}

// readChunk reads the locks after the name, and suggests timers for them.
func (t *Timers) readChunk(
	ctx context.Context, after string, keepIdle time.Duration,
) (next string, idle []string, err error) {
	rows, err := t.db.Rest.Query(ctx, sqlScan, after, chunkSize, keepIdle)
	if err != nil {
		return "", nil, err
	}
	var name string
	var left *float64 // milliseconds
	var isIdle bool
	locks := 0
	_, err = pgx.ForEachRow(rows, []any{&name, &left, &isIdle}, func() error {
		locks++
		if left != nil {
			t.suggest(name, time.Now().Add(time.Duration(*left*float64(time.Millisecond))))
		}
		if isIdle {
			idle = append(idle, name)
		}
		return nil
	})
	if locks == chunkSize {
		next = name
	}
	return next, idle, err
}

// prune deletes those of the locks that are still idle.
func (t *Timers) prune(ctx context.Context, names []string, keepIdle time.Duration) error {
	keys := make([]int64, len(names))
	for i, name := range names {
		keys[i] = row.NameKey(name)
	}
	_, err := t.db.Rest.Exec(ctx, sqlPrune, names, keys, keepIdle)
	return err
}
