package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/metrics"
	"github.com/paddock-lock/paddock/store"
)

// A served is the Service of a replica, and what else the server needs of it.
type served struct {
	locks paddock.Service
	// replica is the id of the replica; empty with cells, in each of which it has another.
	replica string
	ready   func(context.Context) error
	stats   func() store.Stats // of all databases together
	info    func() []paddock.DatabaseInfo
	// paused returns the databases in which grants are paused. Only for these it asks the database.
	paused func() []paddock.DatabaseInfo
	drain  func()
	close  func()
	// cells and cellOf are nil without cells.
	cells  func(context.Context) []paddock.Cell
	cellOf func(name string) string
}

// storeOptions are how the stores of a replica are opened.
type storeOptions struct {
	settings
	metered *metrics.Metrics
	traces  trace.TracerProvider
	// describe returns what heartbeats say of the process.
	describe func() paddock.ReplicaInfo
	prepare  func(context.Context, cellDatabase) error // of each cell
}

// openStores opens the database, for which it waits as long as that says, or the cells, see openCells.
func (p *program) openStores(ctx context.Context, all []cellDatabase, o storeOptions, fail func(error)) (*served, error) {
	if all[0].name == "" {
		s, err := p.openStore(ctx, all[0], o)
		if err != nil {
			return nil, err
		}
		info := func() []paddock.DatabaseInfo { return []paddock.DatabaseInfo{s.Info()} }
		paused := pausedIn(func() map[string]*store.Store { return map[string]*store.Store{"": s} })
		return &served{
			locks: s, replica: s.ReplicaID(), ready: s.Ready, stats: s.Stats, info: info, paused: paused, drain: s.Drain, close: s.Close,
		}, nil
	}
	opened, err := p.openCells(ctx, all, func(ctx context.Context, c cellDatabase) (*store.Store, error) {
		c.Wait = untilBack
		if err := o.prepare(ctx, c); err != nil {
			return nil, err
		}
		return p.openStore(ctx, c, o)
	}, fail)
	if err != nil {
		return nil, err
	}
	return &served{
		locks: opened.router, ready: opened.router.Ready, cells: opened.router.Cells, cellOf: opened.router.CellOf, drain: opened.drain, close: opened.close,
		stats:  func() store.Stats { return countsOf(opened.all()) },
		info:   func() []paddock.DatabaseInfo { return infoOf(namesOfCells(all), opened.all()) },
		paused: pausedIn(opened.all),
	}, nil
}

// openStore opens one database.
func (p *program) openStore(ctx context.Context, c cellDatabase, o storeOptions) (opened *store.Store, err error) {
	options := o.store(c.log(p.log))
	options.Observer, options.Tracer, options.DatabaseURL = o.metered.Cell(c.name), statementTracer(o.traces), c.url
	options.Schema, options.Cell, options.Describe = string(c.Schema), c.name, o.describe
	err = c.reached(ctx, c.log(p.log), func(url string) (err error) {
		opened, err = store.Open(ctx, url, options)
		return err
	})
	if err == nil {
		o.metered.Cell(c.name).Store(opened.Stats)
	}
	return opened, err
}

// log returns the log with the name of the cell.
func (c cellDatabase) log(log *slog.Logger) *slog.Logger {
	if c.name == "" {
		return log
	}
	return log.With("cell", c.name)
}

// namesOfCells returns the names of the cells, none without cells.
func namesOfCells(all []cellDatabase) (names []string) {
	for _, c := range all {
		if c.name != "" {
			names = append(names, c.name)
		}
	}
	return names
}

// infoOf returns how each cell is. They are asked at once, so that one that is away delays no other.
func infoOf(names []string, open map[string]*store.Store) []paddock.DatabaseInfo {
	all := make([]paddock.DatabaseInfo, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() {
			all[i].Problem = "The database was not reachable yet; the log of this replica says why."
			if s := open[name]; s != nil {
				all[i] = s.Info()
			}
			all[i].Cell = name
		})
	}
	asked.Wait()
	return all
}

// pausedIn returns how the databases are in which grants are paused, by the name of their cell.
func pausedIn(open func() map[string]*store.Store) func() []paddock.DatabaseInfo {
	return func() (paused []paddock.DatabaseInfo) {
		all := open()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name].Stats().GrantsPaused > 0 {
				info := all[name].Info()
				info.Cell = name
				paused = append(paused, info)
			}
		}
		return paused
	}
}

// countsOf returns the counts of the locks of several stores as one, of when the oldest was counted. They are not
// counted as long as one store was not.
func countsOf(all map[string]*store.Store) (s store.Stats) {
	for i, one := range slices.Collect(maps.Values(all)) {
		of := one.Stats().Locks
		if i == 0 {
			s.Locks = of
			continue
		}
		sum := &s.Locks
		if of.At.Before(sum.At) {
			sum.At = of.At
		}
		sum.All, sum.Held, sum.InGrace, sum.Suspect = sum.All+of.All, sum.Held+of.Held, sum.InGrace+of.InGrace, sum.Suspect+of.Suspect
		sum.Contended, sum.Waiters = sum.Contended+of.Contended, sum.Waiters+of.Waiters
		sum.OldestWait, sum.OldestLease = max(sum.OldestWait, of.OldestWait), max(sum.OldestLease, of.OldestLease)
	}
	return s
}
