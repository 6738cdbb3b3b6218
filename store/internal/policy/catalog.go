package policy

import (
	"context"
	"embed"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlPolicy    = database.Statement(files, "policy")
	sqlListTrees = database.Statement(files, "list_trees")
)

// ErrChanged is returned for a decision that was made for another policy than that of the database. Nothing was written.
// It may be made again after a Refresh.
var ErrChanged = errors.New("the policy has changed")

// A Snapshot is the policy at one version. It is shared and never changed. The zero Snapshot declares nothing, and is of
// no epoch.
type Snapshot struct {
	lock.Policy
	placement.Map
	Version epoch.PolicyVersion
	At      time.Time // when it was read, on the database's clock
}

// Check returns ErrChanged unless this is the policy of the epoch as it was read.
func (s *Snapshot) Check(e epoch.Epoch) error {
	if s.Version != e.Policy() {
		return ErrChanged
	}
	return nil
}

// scan reads the columns of sql/policy.sql.
func (s *Snapshot) scan(row pgx.Row) error {
	var roots []string
	var freezes []storedFreeze
	var rules []storedRule
	var cells []storedCell
	var groups []placement.Row
	if err := row.Scan(&s.Version.Epoch, &s.Version.Changes, &roots, &freezes, &rules, &cells, &groups, &s.At); err != nil {
		return err
	}
	s.Map = mapOf(cells, groups)
	for _, f := range freezes {
		if s.Freezes == nil {
			s.Freezes = make(map[lock.Scope]lock.Freeze, len(freezes))
		}
		s.Freezes[f.Scope] = f.freeze()
	}
	for _, r := range rules {
		if s.Rules == nil {
			s.Rules = make(map[lock.Scope]lock.Rule, len(rules))
		}
		s.Rules[r.Scope] = r.rule()
	}
	if len(roots) > 0 {
		s.Trees = make(lock.Trees, len(roots))
	}
	for _, root := range roots {
		s.Trees[root] = struct{}{}
	}
	return nil
}

// A storedFreeze is a freeze as sql/policy.sql returns it.
type storedFreeze struct {
	Scope  lock.Scope
	Reason string
	By     string
	At     int64
	Until  *int64
}

func (f storedFreeze) freeze() lock.Freeze {
	out := lock.Freeze{Scope: f.Scope, Reason: f.Reason, By: f.By, FrozenAt: time.UnixMicro(f.At).UTC()}
	if f.Until != nil {
		out.Until = time.UnixMicro(*f.Until).UTC()
	}
	return out
}

// A storedRule is a rule as sql/policy.sql returns it.
type storedRule struct {
	Scope            lock.Scope
	TTL, Hold, Grace int64
	Capacity, Leases int
	By               string
	At               int64
}

func (r storedRule) rule() lock.Rule {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return lock.Rule{
		Scope: r.Scope, MaxTTL: ms(r.TTL), MaxHold: ms(r.Hold), MinGrace: ms(r.Grace), Capacity: r.Capacity, MaxLeases: r.Leases,
		SetBy: r.By, SetAt: time.UnixMicro(r.At).UTC(),
	}
}

// A Catalog keeps the newest policy that this replica has read, and changes it. It is safe for concurrent use.
type Catalog struct {
	db      *database.DB
	epochs  *epoch.Monitor
	newest  atomic.Pointer[Snapshot] // every call reads it, and few replace it
	changed func(Difference)
	limits  limiter

	// turn is held by the call that changes the policy. No other call does that before next.
	turn sync.Mutex
	next time.Time
}

// New returns a Catalog that has read nothing yet: its newest Snapshot is the zero one.
// changed is called, in any goroutine, with what differs in a newer Snapshot.
func New(db *database.DB, epochs *epoch.Monitor, changed func(Difference)) *Catalog {
	c := &Catalog{db: db, epochs: epochs, changed: changed}
	c.newest.Store(&Snapshot{})
	return c
}

// Newest returns the newest policy that was read. There may be a newer one.
func (c *Catalog) Newest() *Snapshot { return c.newest.Load() }

// Refresh reads the policy, on a connection of its own.
func (c *Catalog) Refresh() error {
	return c.db.Within(func(ctx context.Context) error {
		_, err := c.read(ctx, c.db.Rest)
		return err
	})
}

// RefreshIfChanged reads the policy unless the newest one is that of the epoch.
func (c *Catalog) RefreshIfChanged(e epoch.Epoch) error {
	if c.Newest().Check(e) == nil {
		return nil
	}
	return c.Refresh()
}

// Of returns the policy of the epoch, which a transaction on conn has read after it locked the row of a lock, or found
// that there is none. It cannot change before that transaction ends: a change waits for each that has used
// paddock.records. The error is ErrChanged if another epoch has started meanwhile.
func (c *Catalog) Of(ctx context.Context, conn *pgx.Conn, e epoch.Epoch) (*Snapshot, error) {
	s := c.Newest()
	if s.Check(e) == nil {
		return s, nil
	}
	s, err := c.read(ctx, conn)
	if err != nil {
		return nil, err
	}
	return s, s.Check(e)
}

// A querier is a connection or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// read reads the policy, and keeps it unless a newer one was read.
func (c *Catalog) read(ctx context.Context, from querier) (*Snapshot, error) {
	s := &Snapshot{}
	if err := s.scan(from.QueryRow(ctx, sqlPolicy.In(c.db.Schema))); err != nil {
		return nil, err
	}
	c.keep(s)
	return s, nil
}

// keep makes s the newest Snapshot, unless the present one is as new.
func (c *Catalog) keep(s *Snapshot) {
	for {
		newest := c.newest.Load()
		if !newest.Version.Before(s.Version) {
			return
		}
		if c.newest.CompareAndSwap(newest, s) {
			if c.changed != nil {
				c.changed(Difference{
					Scopes: differing(&newest.Policy, &s.Policy), Groups: moved(&newest.Map, &s.Map),
					Cells: newest.Generation != s.Generation,
				})
			}
			return
		}
	}
}

// A Difference is what a newer Snapshot may allow or refuse that the one before did not.
type Difference struct {
	Scopes []lock.Scope // whose freezes or rules have changed
	Groups []string     // whose rows of the placement have changed
	Cells  bool         // the set of cells has changed, and with it the homes of other groups
}

// differing returns the scopes whose freezes or rules differ.
func differing(a, b *lock.Policy) (scopes []lock.Scope) {
	of := map[lock.Scope]struct{}{}
	for _, pair := range [][2]*lock.Policy{{a, b}, {b, a}} {
		for s, f := range pair[0].Freezes {
			if pair[1].Freezes[s] != f {
				of[s] = struct{}{}
			}
		}
		for s, r := range pair[0].Rules {
			if pair[1].Rules[s] != r {
				of[s] = struct{}{}
			}
		}
	}
	return slices.Collect(maps.Keys(of))
}

// List returns the trees, in the order of their roots.
func List(ctx context.Context, from interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, in schema.Name) ([]lock.Tree, error) {
	rows, err := from.Query(ctx, sqlListTrees.In(in), nil)
	if err != nil {
		return nil, err
	}
	return scanTrees(rows)
}

// scanTrees reads the columns of sql/list_trees.sql.
func scanTrees(rows pgx.Rows) ([]lock.Tree, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t lock.Tree, err error) {
		err = row.Scan(&t.Root, &t.DeclaredAt)
		t.DeclaredAt = t.DeclaredAt.UTC()
		return t, err
	})
}
