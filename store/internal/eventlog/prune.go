package eventlog

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/store/internal/database"
)

var (
	sqlPruneBatches = database.Statement(files, "prune_batches")
	sqlPruneMoved   = database.Statement(files, "prune_moved")
	sqlPruneRefs    = database.Statement(files, "prune_refs")
)

const (
	pruneBatches = 500              // at a time
	prunePages   = 512              // of references at a time, 4 MiB
	pruneRefs    = 1000             // deleted references after which the next pages are read at once
	pruneRest    = 10 * time.Second // about, after a step that found little to delete
)

// A pruner deletes old events, step by step.
type pruner struct {
	*Log
	keep  time.Duration
	after int64 // the batch after which there may be old ones
	page  int64 // of the references, where the next step begins
}

// Prune deletes events that are older than keep, and references to them, until the DB stops.
func (l *Log) Prune(keep time.Duration) {
	p := &pruner{Log: l, keep: keep}
	for l.db.Sleep(database.Jittered(pruneRest)) {
		l.db.Report("pruning events", repeat(p.pruneBatches))
		l.db.Report("pruning events of other cells", repeat(p.pruneMoved))
		l.db.Report("pruning references to events", repeat(p.pruneRefs))
	}
}

// repeat calls step while there is more to do.
func repeat(step func() (more bool, err error)) error {
	for {
		if more, err := step(); err != nil || !more {
			return err
		}
	}
}

// pruneBatches deletes old batches. more reports whether there are likely to be further ones.
func (p *pruner) pruneBatches() (more bool, err error) {
	var after, deleted int64
	err = p.db.Unhurried(func(ctx context.Context) error {
		return p.db.Rest.QueryRow(ctx, sqlPruneBatches.In(p.db.Schema), p.after, pruneBatches, p.keep).Scan(&after, &deleted)
	})
	if err != nil {
		return false, err
	}
	p.after = max(p.after, after)
	return deleted == pruneBatches, nil
}

// pruneMoved deletes old batches that moved in from another cell. more reports whether there are likely to be further
// ones.
func (p *pruner) pruneMoved() (more bool, err error) {
	var deleted int64
	err = p.db.Unhurried(func(ctx context.Context) error {
		return p.db.Rest.QueryRow(ctx, sqlPruneMoved.In(p.db.Schema), pruneBatches, p.keep).Scan(&deleted)
	})
	return err == nil && deleted == pruneBatches, err
}

// pruneRefs deletes references to pruned events in the next pages of the table. After the last page it begins again
// with the first one. more reports whether the pages had many of them.
func (p *pruner) pruneRefs() (more bool, err error) {
	var deleted int64
	var further bool
	err = p.db.Unhurried(func(ctx context.Context) error {
		return p.db.Rest.QueryRow(ctx, sqlPruneRefs.In(p.db.Schema), p.page, prunePages).Scan(&deleted, &further)
	})
	if err != nil {
		return false, err
	}
	p.page += prunePages
	if !further {
		p.page = 0
	}
	return deleted >= pruneRefs, nil
}
