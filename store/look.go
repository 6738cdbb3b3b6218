package store

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// lookAhead has the connection remember the locks that calls want to have and that it does not
// remember, so that these are decided from memory, too. It locks nothing: what is changed after
// the look is not swapped. A look and a swap are as many round trips as a transaction, and
// less work.
func (s *Store) lookAhead(ctx context.Context, conn *pgx.Conn, calls []*call) error {
	r := recentsOf(conn)
	if r == nil || r.ended {
		return nil
	}
	names, unseen := s.seen.likely(slices.DeleteFunc(r.wantedAnew(calls), s.crowd.has))
	if len(names) == 0 {
		return nil
	}
	found, err := lookFor(ctx, conn, names)
	if err != nil {
		return err
	}
	for _, l := range found {
		r.put(l.state, l.anchor, s.self)
	}
	s.seen.note(maps.Keys(found))
	s.seen.learn(unseen, found)
	return nil
}

// wantedAnew returns the locks, in order, that calls want for themselves and that are not
// remembered; none unless half of the calls can be done from memory if all of those are found.
func (r *recents) wantedAnew(calls []*call) []string {
	var names []string
	others := 0
	for _, c := range calls {
		_, known := r.get(nameOf(c))
		a, asks := c.Req.(acquireCall)
		switch {
		case known:
		case asks && a.Mode == lock.Exclusive && len(a.Metadata) <= maxRecentMetadata:
			names = append(names, a.Name)
		default:
			others++
		}
	}
	if 2*others > len(calls) {
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// lookFor returns those of the locks to which there is no more than an anchor.
func lookFor(ctx context.Context, conn *pgx.Conn, names []string) (map[string]recent, error) {
	rows, err := conn.Query(ctx, sqlLook, names)
	if err != nil {
		return nil, err
	}
	found := make(map[string]recent, len(names))
	var l row
	var a anchor
	_, err = pgx.ForEachRow(rows, append(l.targets(), &a.at, &a.version), func() error {
		found[l.name] = recent{state: l.state(), anchor: a}
		return nil
	})
	return found, err
}
