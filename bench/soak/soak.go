package soak

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/bench/measure"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/bench/workload"
)

// Options configure a soak.
type Options struct {
	Workload workload.Workload
	For      time.Duration
	Every    time.Duration // length of an interval

	// Done is called after each interval.
	Done func(Interval)
}

// An Interval is the result of an interval and the state at its end.
type Interval struct {
	Minutes float64    `json:"minutes"` // from the start of the soak to the end of the interval
	Run     result.Run `json:"run"`
	Server  int64      `json:"server"`  // private memory of paddock serve, in bytes
	Backend int64      `json:"backend"` // private memory of PostgreSQL, in bytes
	Tables  int64      `json:"tables"`  // size on disk with indexes, in bytes
	Rows    int64      `json:"rows"`    // live rows, as estimated by PostgreSQL
}

// Run runs the workload on a started system. It stops at the first interval that fails.
func Run(ctx context.Context, s system.PostgresBacked, o Options) ([]Interval, error) {
	conn, err := pgx.Connect(ctx, s.DatabaseURL())
	if err != nil {
		return nil, err
	}
	var all []Interval
	began := time.Now()
	each := workload.Options{Measured: o.Every}
	for err == nil && time.Since(began) < o.For {
		next := Interval{Run: o.Workload.Run(ctx, s, each)}
		if next.Run.Error != "" {
			err = errors.New(next.Run.Error)
			break
		}
		next.Minutes = time.Since(began).Minutes()
		err = next.measure(ctx, s, conn)
		all = append(all, next)
		o.Done(next)
	}
	return all, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// tables selects the size and the rows of Paddock's tables.
const tables = `select coalesce(sum(pg_total_relation_size(relid)), 0)::bigint, coalesce(sum(n_live_tup), 0)::bigint
	from pg_stat_user_tables where schemaname = 'paddock'`

// measure reads the state of the system.
func (s *Interval) measure(ctx context.Context, of system.PostgresBacked, conn *pgx.Conn) error {
	memory, err := measure.Memory(of.Processes())
	if err != nil {
		return err
	}
	s.Server, s.Backend = memory[system.Server], memory[system.Database]
	return conn.QueryRow(ctx, tables).Scan(&s.Tables, &s.Rows)
}
