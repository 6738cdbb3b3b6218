package cell

import (
	"context"
	"log/slog"
	"time"

	"github.com/paddock-lock/paddock/internal/placement"
)

// lookEvery is how often a Router compares what the cells say of groups.
const lookEvery = time.Second / 2

// A claim is that of a cell that decides about a group which has moved to another one.
type claim struct {
	by  *member
	row placement.Row // as the other cell says it
}

// RemindCells reminds cells that groups have left them, until ctx ends. A fail-over to a standby without the last commits,
// or a restore, makes a cell forget that. The Router sends no call about such a group to it, but one that does not reach
// the other cell would.
func (r *Router) RemindCells(ctx context.Context, log *slog.Logger) {
	for pause(ctx, lookEvery) {
		for _, c := range r.claims() {
			s := c.by.open.Load()
			err := (*s).Leave(ctx, c.row)
			log.ErrorContext(ctx, "a cell had forgotten that a group has left it; run paddock cell pin for the group again", "cell", c.by.name,
				"group", c.row.Group, "has_it", c.row.Cell, "reminded", err == nil, "error", err)
		}
	}
}

// claims returns the groups that a cell decides about although another one says that it has them since later.
func (r *Router) claims() (all []claim) {
	known := r.maps()
	rows := newestRows(known)
	for i, m := range known {
		if m == nil {
			continue
		}
		for group, row := range rows {
			if row.State == placement.Here && row.Cell != m.Self && row.Generation > m.GenerationOf(group) && m.Elsewhere(group) == nil {
				all = append(all, claim{r.cells[i], row})
			}
		}
	}
	return all
}
