package measure

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/bench/system"
)

// A Probe reads the accumulated costs of a system.
type Probe struct {
	processes []system.Process
	conn      *pgx.Conn // to the system's PostgreSQL; nil if it has none
	statement string
}

// Open returns a Probe of a running system.
func Open(ctx context.Context, s system.System) (*Probe, error) {
	p := &Probe{processes: s.Processes()}
	in, ok := s.(system.PostgresBacked)
	if !ok {
		return p, nil
	}
	var err error
	if p.conn, err = pgx.Connect(ctx, in.DatabaseURL()); err != nil {
		return nil, err
	}
	p.statement, err = statement(ctx, p.conn)
	return p, err
}

// Close closes the Probe's connection.
func (p *Probe) Close() error {
	if p.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return p.conn.Close(ctx)
}

// A Mark contains the accumulated costs at a point in time.
type Mark struct {
	At     time.Time
	Client time.Duration // CPU time of the bench
	CPU    map[system.Role]time.Duration
	WAL    *WAL // nil if the system has no PostgreSQL
}

// Mark reads the current costs.
func (p *Probe) Mark(ctx context.Context) (Mark, error) {
	m := Mark{At: time.Now(), CPU: map[system.Role]time.Duration{}}
	var errs [3]error
	m.Client, errs[0] = Own()
	errs[1] = p.readProcesses(m.CPU)
	if p.conn != nil {
		var wal WAL
		wal, errs[2] = p.readWAL(ctx)
		m.WAL = &wal
	}
	return m, errors.Join(errs[:]...)
}

// Fsyncs returns the number of WAL fsyncs that PostgreSQL has reported, or false without PostgreSQL.
func (p *Probe) Fsyncs(ctx context.Context) (int64, bool, error) {
	if p.conn == nil {
		return 0, false, nil
	}
	w, err := p.readWAL(ctx)
	return w.Fsyncs, true, err
}

func (p *Probe) readWAL(ctx context.Context) (WAL, error) {
	var w WAL
	err := p.conn.QueryRow(ctx, p.statement).Scan(&w.Bytes, &w.Fsyncs, &w.Deleted)
	return w, err
}

func (p *Probe) readProcesses(sums map[system.Role]time.Duration) error {
	var roots []int
	for _, process := range p.processes {
		roots = append(roots, process.PID)
	}
	trees, err := Trees(roots)
	if err != nil {
		return err
	}
	for _, process := range p.processes {
		sums[process.Role] += trees[process.PID]
	}
	return nil
}
