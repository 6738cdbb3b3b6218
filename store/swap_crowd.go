package store

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// undrawn stands for a token that the database draws.
const undrawn = -1

// appendCrowd appends what sql/swap_crowded.sql is given beyond swap.sql's arguments.
func (s *swap) appendCrowd(args [][]byte, types *pgtype.Map, oids []uint32) ([][]byte, error) {
	told := newSwapArray(s.recents.element, len(s.all))
	var refs []int64
	var w waiters
	for _, one := range s.all {
		for _, d := range one.decisions {
			for i := range d.Events {
				told.tell(&d.Events[i], d.Events[i].Token == undrawn)
			}
		}
		for _, c := range one.calls {
			if ref := refOf(c); ref != 0 {
				refs = append(refs, int64(ref))
			}
		}
		w.add(one.after.Name, one.before.state.Queue, one.after.Queue)
	}
	args = append(args, told.bytes())
	for _, column := range append(append([]any{refs}, w.dropped.args()...), w.args()...) {
		arg, err := types.Encode(oids[len(args)], pgx.BinaryFormatCode, column, make([]byte, 0, 32))
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}
