package pgbench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/postgres"
	"github.com/paddock-lock/paddock/bench/system"
)

const (
	table = "create table counts (id int primary key, n bigint not null) with (fillfactor = 50);" +
		"insert into counts select i, 0 from generate_series(1, 10000) i; analyze counts"
	script = "\\set id random(1, 10000)\nupdate counts set n = n + 1 where id = :id;\n"
)

// System is PostgreSQL with pgbench.
type System struct {
	postgres.Database
	program string
	dir     string
}

// Name implements system.System.
func (*System) Name() string { return "pgbench" }

// Title implements system.System.
func (*System) Title() string { return "PostgreSQL, one-row update (pgbench)" }

// Start starts PostgreSQL and creates the table.
func (s *System) Start(ctx context.Context, dir string) error {
	var err error
	if s.program, err = daemon.Find("pgbench", "postgresql-contrib"); err != nil {
		return err
	}
	s.dir = dir
	if err := s.Database.Start(ctx, dir); err != nil {
		return err
	}
	return errors.Join(s.fill(ctx), os.WriteFile(s.path("script.sql"), []byte(script), 0o644))
}

func (s *System) fill(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.DatabaseURL())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, table)
	return errors.Join(err, conn.Close(ctx))
}

func (s *System) path(name string) string { return filepath.Join(s.dir, name) }

// Stop stops PostgreSQL and removes the script.
func (s *System) Stop() error {
	if s.dir == "" {
		return nil // never started
	}
	err := os.Remove(s.path("script.sql"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.Database.Stop())
}

// Client returns system.ErrUnsupported, because there are no locks.
func (*System) Client(context.Context) (system.Client, error) { return nil, system.ErrUnsupported }

// Load runs pgbench for d, rounded to whole seconds.
func (s *System) Load(ctx context.Context, clients int, d time.Duration) (system.LoadResult, error) {
	whole := max(time.Second, d.Round(time.Second))
	prefix := s.path("times")
	cmd := exec.CommandContext(ctx, s.program, "--no-vacuum", "--protocol=prepared", "--file="+s.path("script.sql"),
		"--client="+strconv.Itoa(clients), "--jobs="+strconv.Itoa(min(clients, 2)), "--time="+strconv.Itoa(int(whole.Seconds())),
		"--log", "--log-prefix="+prefix, s.DatabaseURL())
	if output, err := cmd.CombinedOutput(); err != nil {
		return system.LoadResult{}, fmt.Errorf("pgbench: %w\n%s", err, output)
	}
	l := system.LoadResult{Unit: "updates", Elapsed: whole, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	logs, err := filepath.Glob(prefix + ".*")
	if err != nil {
		return l, err
	}
	for _, log := range logs {
		took, err := read(log)
		if err != nil {
			return l, err
		}
		l.Latencies = append(l.Latencies, took...)
	}
	return l, nil
}
