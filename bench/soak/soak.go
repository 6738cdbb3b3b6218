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

// Options say what to do, and for how long.
type Options struct {
	Workload workload.Workload
	For      time.Duration
	Every    time.Duration // how long a stretch is, after each of which is looked; zero: a minute

	// Done is told of each stretch.
	Done func(Interval)
}

// A Interval is what was done for a while, and what there was at its end.
type Interval struct {
	Minutes float64    `json:"minutes"` // since the beginning, at the end
	Run     result.Run `json:"run"`
	Server  int64      `json:"server"` // bytes of memory that are its own
	Backend int64      `json:"backend"`
	Tables  int64      `json:"tables"` // bytes on disk, with indexes
	Rows    int64      `json:"rows"`   // that are alive, by PostgreSQL's estimate
}

// Run has a system that was started work. It stops at the first stretch that fails.
func Run(ctx context.Context, s system.PostgresBacked, o Options) ([]Interval, error) {
	conn, err := pgx.Connect(ctx, s.DatabaseURL())
	if err != nil {
		return nil, err
	}
	var all []Interval
	began := time.Now()
	each := workload.Options{Measured: o.Every}
	if each.Measured == 0 {
		each.Measured = time.Minute
	}
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

// tables are all of Paddock's: their bytes, and the rows in them.
const tables = `select coalesce(sum(pg_total_relation_size(relid)), 0)::bigint, coalesce(sum(n_live_tup), 0)::bigint
	from pg_stat_user_tables where schemaname = 'paddock'`

// measure reads what there is.
func (s *Interval) measure(ctx context.Context, of system.PostgresBacked, conn *pgx.Conn) error {
	for _, p := range of.Processes() {
		bytes, err := measure.Memory(p.PID)
		if err != nil {
			return err
		}
		if p.Role == system.Database {
			s.Backend += bytes
		} else {
			s.Server += bytes
		}
	}
	return conn.QueryRow(ctx, tables).Scan(&s.Tables, &s.Rows)
}
