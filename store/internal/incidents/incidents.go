// Package incidents counts what should be rare and that operators ask for: leases that expired or were revoked, and
// stale tokens that were refused, in the last hour and by all replicas together.
//
// The history has all of them, but to count an hour of it takes seconds on a busy service. So each replica adds what
// it has decided to a row for each minute, every few seconds. A replica that crashes loses what it has not added yet,
// and an addition whose answer is lost is made twice: these are figures to look at, and metrics and the history are
// exact.
package incidents

import (
	"context"
	"embed"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// interval is how often a replica adds its counts, and reads those of all.
const interval = 3 * time.Second

//go:embed sql/*.sql
var files embed.FS

var sqlCount = database.Statement(files, "count")

// Counts are numbers of incidents.
type Counts struct {
	Expired, Revoked int64 // leases
	Refused          int64 // stale tokens that were recorded
}

func (c *Counts) add(o Counts) {
	c.Expired, c.Revoked, c.Refused = c.Expired+o.Expired, c.Revoked+o.Revoked, c.Refused+o.Refused
}

// A Counter counts incidents. It is safe for concurrent use.
type Counter struct {
	db *database.DB

	mu       sync.Mutex
	fresh    Counts // of this replica, not yet added
	lastHour Counts // of all replicas, at the last addition
}

// New returns a Counter. Run adds its counts.
func New(db *database.DB) *Counter { return &Counter{db: db} }

// Note counts what was decided and committed.
func (c *Counter) Note(d *lock.Decision) {
	var n Counts
	for i := range d.Events {
		switch d.Events[i].Kind {
		case lock.Expired:
			n.Expired++
		case lock.Revoked:
			n.Revoked++
		case lock.Refused:
			n.Refused++
		}
	}
	if n != (Counts{}) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fresh.add(n)
	}
}

// LastHour returns the counts of the last hour, to within a minute. Those of other replicas are a few seconds old.
func (c *Counter) LastHour() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.lastHour
	n.add(c.fresh)
	return n
}

// Run adds this replica's counts until the database is stopped.
func (c *Counter) Run() {
	var trouble database.Trouble
	for {
		c.db.Report(&trouble, "counting incidents", c.exchange())
		if !c.db.Sleep(database.Jittered(interval)) {
			return
		}
	}
}

// exchange adds this replica's counts, and reads those of all. What could not be added is kept for the next time.
func (c *Counter) exchange() error {
	c.mu.Lock()
	mine := c.fresh
	c.mu.Unlock()
	var all Counts
	err := c.db.Unhurried(func(ctx context.Context) error {
		return c.db.SendRelaxed(ctx, func(b *pgx.Batch) {
			b.Queue(sqlCount.In(c.db.Schema), mine.Expired, mine.Revoked, mine.Refused).QueryRow(func(row pgx.Row) error {
				return row.Scan(&all.Expired, &all.Revoked, &all.Refused)
			})
		})
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastHour = all
	c.fresh.add(Counts{Expired: -mine.Expired, Revoked: -mine.Revoked, Refused: -mine.Refused})
	return nil
}
