package store

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// scanEvent reads a row of the table events, its columns in the order of
// sql/list_events.sql.
func scanEvent(row pgx.CollectableRow) (lock.Event, error) {
	var e lock.Event
	err := row.Scan(&e.ID, &e.At, &e.Name, &e.Slot, &e.Revision, &e.Kind, &e.Token, &e.Holder, &e.Mode, &e.Reason, &e.Place, &e.Ref)
	e.At = e.At.UTC()
	return e, err
}

// eventRows are rows of the table events to write: a slice a column.
type eventRows struct {
	ids       []int64
	ats       []time.Time
	names     []string
	slots     []int32
	revisions []int64
	kinds     []int16
	modes     []int16
	holders   []string
	tokens    []int64
	reasons   []string
	places    []int64
	refs      []int64
}

func (r *eventRows) add(e lock.Event) {
	r.ids = append(r.ids, e.ID)
	r.ats = append(r.ats, e.At)
	r.names = append(r.names, e.Name)
	r.slots = append(r.slots, int32(e.Slot))
	r.revisions = append(r.revisions, e.Revision)
	r.kinds = append(r.kinds, int16(e.Kind))
	r.modes = append(r.modes, int16(e.Mode))
	r.holders = append(r.holders, e.Holder)
	r.tokens = append(r.tokens, int64(e.Token))
	r.reasons = append(r.reasons, e.Reason)
	r.places = append(r.places, e.Place)
	r.refs = append(r.refs, int64(e.Ref))
}

// args are the columns in the order of sql/save_events.sql.
func (r *eventRows) args() []any {
	return []any{r.ids, r.ats, r.names, r.slots, r.revisions, r.kinds, r.modes, r.holders, r.tokens, r.reasons, r.places, r.refs}
}

// newest returns the greatest id among the rows, zero if there are none. They are in the order of their ids.
func (r *eventRows) newest() int64 {
	if len(r.ids) == 0 {
		return 0
	}
	return r.ids[len(r.ids)-1]
}
