package sessions

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// watchInterval is how often a replica asks which of the sessions that calls wait for have ended at other replicas. It
// has no jitter, so that a call is told within half a second.
const watchInterval = 400 * time.Millisecond

var sqlEnded = database.Statement(files, "ended")

// A Watch waits for the end of sessions. Stop it.
type Watch struct {
	keeper *Keeper
	refs   []lock.SessionRef
	// Ended is closed when one of the sessions has ended.
	Ended chan struct{}
	ended []lock.SessionRef // owned by the watches
}

// watches are the calls that wait for the end of sessions.
type watches struct {
	mu sync.Mutex
	of map[lock.SessionRef]map[*Watch]struct{}
}

// Watch returns a Watch of the sessions. A session that had ended before counts as ended, and so
// does one that does not exist.
func (k *Keeper) Watch(ctx context.Context, refs []lock.SessionRef) (*Watch, error) {
	w := &Watch{keeper: k, refs: refs, Ended: make(chan struct{})}
	k.watches.add(w) // before the look: what ends after that is told
	err := k.db.Read(ctx, func(ctx context.Context) error { return k.look(ctx, refs) })
	if err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// Stop ends the watch, and returns those of the sessions that have ended.
func (w *Watch) Stop() []lock.SessionRef { return w.keeper.watches.remove(w) }

// RunWatches looks for ends at other replicas until the database is stopped. Without watches it asks for nothing.
func (k *Keeper) RunWatches() {
	for k.db.Sleep(watchInterval) {
		refs := k.watches.open()
		if len(refs) == 0 {
			continue
		}
		k.db.Report("watching sessions", k.db.Within(func(ctx context.Context) error { return k.look(ctx, refs) }))
	}
}

// look tells the watches which of the sessions have ended.
func (k *Keeper) look(ctx context.Context, refs []lock.SessionRef) error {
	rows, err := k.db.Rest.Query(ctx, sqlEnded.In(k.db.Schema), refs)
	if err != nil {
		return err
	}
	ended, err := pgx.CollectRows(rows, pgx.RowTo[lock.SessionRef])
	k.watches.tell(ended...)
	return err
}

func (a *watches) add(w *Watch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = make(map[lock.SessionRef]map[*Watch]struct{})
	}
	for _, ref := range w.refs {
		if a.of[ref] == nil {
			a.of[ref] = make(map[*Watch]struct{})
		}
		a.of[ref][w] = struct{}{}
	}
}

func (a *watches) remove(w *Watch) []lock.SessionRef {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ref := range w.refs {
		if delete(a.of[ref], w); len(a.of[ref]) == 0 {
			delete(a.of, ref)
		}
	}
	return w.ended
}

// open returns the sessions that calls wait for.
func (a *watches) open() (refs []lock.SessionRef) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ref := range a.of {
		refs = append(refs, ref)
	}
	return refs
}

// tell tells the watches of the sessions that these have ended.
func (a *watches) tell(refs ...lock.SessionRef) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ref := range refs {
		for w := range a.of[ref] {
			if slices.Contains(w.ended, ref) {
				continue
			}
			if w.ended = append(w.ended, ref); len(w.ended) == 1 {
				close(w.Ended)
			}
		}
	}
}
