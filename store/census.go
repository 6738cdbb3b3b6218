package store

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// The census walks the table in name order, so that leases granted by a replica
// that is gone end promptly too, and locks long free are forgotten. It reads a
// stretch, then rests for as long that it takes a small share of one core.
const (
	censusStretch = 5000                   // rows at a time
	censusRest    = 400 * time.Millisecond // the least, before the table is walked again
	censusShare   = 20                     // rests this many times as long as a stretch took
	pruneStretch  = 5000                   // events at a time
	pruneRest     = 10 * time.Second       // after a stretch that was not full
)

// A tally is what a stretch of the census found.
type tally struct {
	next string   // the name after which there may be more, empty at the end
	idle []string // free for long
}

// takeCensus walks the table again and again until the store closes. A stretch
// that failed is read again.
func (s *Store) takeCensus(keepIdle time.Duration) {
	var failing trouble
	after := ""
	for {
		began := time.Now()
		t, err := s.count(after, keepIdle)
		if err == nil {
			after = t.next
			err = s.pruneLocks(t.idle, keepIdle)
		}
		s.troubled(&failing, "scan", err)
		rest := censusShare * time.Since(began)
		if after == "" || err != nil {
			rest = max(rest, censusRest)
		}
		if !s.sleep(jittered(rest)) {
			return
		}
	}
}

func (s *Store) pruneLocks(names []string, keepIdle time.Duration) error {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, sqlPruneLocks, names, keepIdle)
	return err
}

// count reads a stretch of the table, and has the sweep hear of its leases.
func (s *Store) count(after string, keepIdle time.Duration) (tally, error) {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, sqlCensus, after, censusStretch, keepIdle)
	if err != nil {
		return tally{}, err
	}
	var t tally
	var name string
	var held, crowded, idle bool
	var overIn float64
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&name, &held, &overIn, &crowded, &idle}, func() error {
		n++
		if crowded {
			overIn = 0 // its first sweep finds out
		}
		if held || crowded {
			s.sweep.hear(name, time.Now().Add(time.Duration(overIn*float64(time.Millisecond))))
		}
		if idle {
			t.idle = append(t.idle, name)
		}
		return nil
	})
	if n == censusStretch {
		t.next = name
	}
	return t, err
}

// pruneEvents deletes events that are old, in small bites, until the store closes.
func (s *Store) pruneEvents(keep time.Duration) {
	var after int64
	for s.sleep(jittered(pruneRest)) {
		s.forgetReplicas(0)
		for s.ctx.Err() == nil {
			last, n, err := s.pruneStretch(after, keep)
			if err != nil && s.ctx.Err() == nil {
				s.log.Warn("pruning events failed; retrying", "error", err)
			}
			after = max(after, last)
			if n < pruneStretch {
				break
			}
		}
	}
}

func (s *Store) pruneStretch(after int64, keep time.Duration) (last, n int64, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	err = s.pool.QueryRow(ctx, sqlPruneEvents, after, pruneStretch, keep).Scan(&last, &n)
	return last, n, err
}

// jittered spreads what replicas do at the same pace.
func jittered(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1)
}
