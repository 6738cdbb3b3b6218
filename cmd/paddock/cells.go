package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/cell"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/when"
	"github.com/paddock-lock/paddock/store"
)

// A cellFlag is the flag of the databases of a deployment that has several.
type cellFlag struct {
	Cell []string `sep:"none" placeholder:"NAME=URL" variable:"PADDOCK_CELL" help:"In place of --database-url: one of several databases that share the locks, with the name of its cell. May be repeated, or separated by commas. In place of the URL it may be a file with the URL, which is read again for each new connection."`
}

// cellFlagName is the name of the flag.
const cellFlagName = "cell"

// nextCell finds the commas between cells. A URL may have commas, too.
var nextCell = regexp.MustCompile(`,[a-z0-9-]+=(postgres(ql)?://|/|\./)`)

// splitCells returns the values of the flag, each one cell.
func splitCells(given []string) (all []string) {
	for _, text := range given {
		for at := nextCell.FindStringIndex(text); at != nil; at = nextCell.FindStringIndex(text) {
			all, text = append(all, text[:at[0]]), text[at[0]+1:]
		}
		all = append(all, text)
	}
	return all
}

// isURL reports whether the value of a cell is the URL of a database, and not a file with it.
func isURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// A cellDatabase is the database of a cell. Without cells the name is empty.
type cellDatabase struct {
	name string
	database
}

// cells returns the databases of the cells, or the only one. Its errors contain no URL.
func (d database) cells() ([]cellDatabase, error) {
	given := splitCells(d.Cell)
	if len(given) == 0 {
		return []cellDatabase{{database: d}}, nil
	}
	if d.URL != "" || d.File != "" {
		return nil, usagef("--cell cannot be combined with --database-url and --database-url-file; name that database as a cell, too")
	}
	all := make([]cellDatabase, len(given))
	for i, text := range given {
		name, url, found := strings.Cut(text, "=")
		switch err := placement.CheckCell(name); {
		case !found || url == "" || isURL(text):
			return nil, usagef("--cell: the %d. one is no NAME=URL; give --cell main=postgres://USER:PASSWORD@HOST:5432/DATABASE", i+1)
		case err != nil:
			return nil, usagef("--cell: %w", err)
		case slices.ContainsFunc(all[:i], func(c cellDatabase) bool { return c.name == name }):
			return nil, usagef("--cell: %s is given twice; give each cell once", name)
		}
		one := d
		one.Cell = nil
		if isURL(url) {
			one.URL = url
		} else {
			one.File = url
		}
		all[i] = cellDatabase{name, one}
	}
	return all, nil
}

// cellDatabases returns the names and URLs of the cells.
func cellDatabases(cells []cellDatabase) ([]store.CellDatabase, error) {
	all := make([]store.CellDatabase, len(cells))
	for i, d := range cells {
		url, err := d.url()
		if err != nil {
			return nil, err
		}
		all[i] = store.CellDatabase{Name: d.name, URL: url}
	}
	return all, nil
}

// single returns the only cell of a command that is about one database.
func (d database) single(what string) (cellDatabase, error) {
	all, err := d.cells()
	if err != nil {
		return cellDatabase{}, err
	}
	if len(all) > 1 {
		return cellDatabase{}, usagef("%s is about one database; give --cell once, for that one", what)
	}
	return all[0], nil
}

// of names the cell after what it has: " of cell main", or nothing without cells.
func (c cellDatabase) of() string {
	if c.name == "" {
		return ""
	}
	return " of cell " + c.name
}

// inCell returns err with the name of the cell.
func (c cellDatabase) inCell(err error) error {
	if err == nil || c.name == "" {
		return err
	}
	return fmt.Errorf("cell %s: %w", c.name, err)
}

const (
	// startTime is how long serve waits for cells that are not open before it answers without them.
	startTime = time.Second
	// cellPause is how long it waits before it looks again at a cell that cannot be opened as it is.
	cellPause = 10 * time.Second
	// untilBack is how long it waits for a cell that is away: a hundred years.
	untilBack = 100 * 365 * when.Day
)

// openedCells are the stores of a replica with several databases.
type openedCells struct {
	router  *cell.Router
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	stores map[string]*store.Store
}

// openCells opens the cells one beside the other. It returns when all are open, or after startTime; the others are opened when
// they are back. It fails if one can never be opened as it is given: its URL is that of another cell, for example. If none can
// be reached for as long as a command waits for its database, it calls fail.
func (p *program) openCells(
	ctx context.Context, all []cellDatabase, open func(context.Context, cellDatabase) (*store.Store, error), fail func(error),
) (*openedCells, error) {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	o := &openedCells{router: cell.New(names...), stores: map[string]*store.Store{}}
	ctx, o.cancel = context.WithCancel(ctx)
	o.running.Go(func() { o.router.RemindCells(ctx, p.log) })
	results := make(chan error, len(all))
	for _, c := range all {
		o.running.Go(func() { o.open(ctx, p.log, c, open, results) })
	}
	started := time.After(startTime)
	for range all {
		select {
		case err := <-results:
			if err != nil {
				o.close()
				return nil, err
			}
		case <-started:
			if len(o.all()) == 0 {
				o.running.Go(func() { awaitFirst(ctx, all[0].Wait-startTime, results, names, fail) })
			}
			return o, nil
		}
	}
	return o, nil
}

// awaitFirst waits for the result of the first cell that is open, and calls fail if there is none in time.
func awaitFirst(ctx context.Context, limit time.Duration, results <-chan error, names []string, fail func(error)) {
	select {
	case err := <-results:
		if err != nil {
			fail(err)
		}
	case <-time.After(limit):
		fail(unreachablef("none of the cells %s can be reached in time; the log says why", strings.Join(names, ", ")))
	case <-ctx.Done():
	}
}

// open opens the cell, however long that takes.
func (o *openedCells) open(
	ctx context.Context, log *slog.Logger, c cellDatabase, open func(context.Context, cellDatabase) (*store.Store, error), results chan<- error,
) {
	for {
		s, err := open(ctx, c)
		if err == nil {
			o.mu.Lock()
			o.stores[c.name] = s
			o.mu.Unlock()
			o.router.Set(c.name, s)
			log.Info("cell is open", "cell", c.name, "replica", s.ReplicaID())
		}
		select {
		case results <- c.inCell(err):
		default: // it is not the first time
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		log.Error("cannot open the cell; retrying", "cell", c.name, "error", err)
		select {
		case <-time.After(cellPause):
		case <-ctx.Done():
			return
		}
	}
}

// all returns the stores that are open.
func (o *openedCells) all() map[string]*store.Store {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.stores)
}

// drain drains all stores.
func (o *openedCells) drain() {
	for _, s := range o.all() {
		s.Drain()
	}
}

// close closes all stores.
func (o *openedCells) close() {
	o.cancel()
	o.running.Wait()
	for _, s := range o.all() {
		o.running.Go(s.Close)
	}
	o.running.Wait()
}
