package paddock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/postgres"
	"github.com/paddock-lock/paddock/bench/system"
)

// A Deployment consists of replicas of paddock serve and their PostgreSQL, or that of each of its cells. Several
// systems may share it; it runs from the first Start to the last Stop.
type Deployment struct {
	Binary   string   // path of paddock; empty to build it
	Replicas int      // zero means one
	Cells    int      // zero means one database that is no cell
	Flags    []string // additional flags for paddock serve

	prefill   func(context.Context, *pgx.Conn) error // called before the first replica starts; may be nil
	users     int
	dir       string
	postgres  []*postgres.Database
	replicas  []*daemon.Daemon
	addresses []string
	next      atomic.Int64 // index of the replica for the next client
}

func (d *Deployment) start(ctx context.Context, dir string) error {
	d.users++
	if d.users > 1 {
		return nil
	}
	if err := d.startDatabases(ctx, dir); err != nil {
		return err
	}
	if err := d.build(ctx, dir); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	for i := range max(d.Replicas, 1) {
		replica, address, err := d.serve(ctx, filepath.Join(dir, fmt.Sprint("replica-", i+1)))
		if err != nil {
			return err
		}
		d.replicas = append(d.replicas, replica)
		d.addresses = append(d.addresses, address)
	}
	return nil
}

// startDatabases starts a server for each cell.
func (d *Deployment) startDatabases(ctx context.Context, dir string) error {
	d.dir = dir
	for i := range max(d.Cells, 1) {
		at := cellDir(dir, i)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		one := &postgres.Database{}
		d.postgres = append(d.postgres, one)
		if err := one.Start(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// cellDir returns the directory of the nth database.
func cellDir(dir string, n int) string { return filepath.Join(dir, fmt.Sprint("cell-", n+1)) }

// build sets Binary to an absolute path and builds paddock if needed.
func (d *Deployment) build(ctx context.Context, dir string) error {
	var err error
	if d.Binary == "" {
		d.Binary, err = Build(ctx, dir)
		return err
	}
	d.Binary, err = filepath.Abs(d.Binary)
	return err
}

// prepare creates the tables and registers the cells, and prefills the tables if there is a prefill function.
func (d *Deployment) prepare(ctx context.Context) error {
	if err := d.migrate(ctx); err != nil {
		return err
	}
	if d.prefill == nil {
		return nil
	}
	conn, err := pgx.Connect(ctx, d.DatabaseURL())
	if err != nil {
		return err
	}
	return errors.Join(d.prefill(ctx, conn), conn.Close(ctx))
}

func (d *Deployment) stop() error {
	d.users = max(d.users-1, 0)
	if d.users > 0 {
		return nil
	}
	var err error
	for _, r := range d.replicas {
		err = errors.Join(err, r.Stop())
	}
	for i, p := range d.postgres {
		err = errors.Join(err, p.Stop(), os.Remove(cellDir(d.dir, i)))
	}
	d.replicas, d.addresses, d.postgres = nil, nil, nil
	return err
}

// address returns the addresses of the replicas in turn.
func (d *Deployment) address() string {
	return d.addresses[int(d.next.Add(1))%len(d.addresses)]
}

// Processes implements system.System.
func (d *Deployment) Processes() []system.Process {
	var all []system.Process
	for _, p := range d.postgres {
		all = append(all, p.Processes()...)
	}
	for _, r := range d.replicas {
		all = append(all, system.Process{Role: system.Server, PID: r.PID()})
	}
	return all
}

// DatabaseURL implements system.PostgresBacked, for a deployment with one database.
func (d *Deployment) DatabaseURL() string { return d.postgres[0].DatabaseURL() }

// env names the databases to paddock.
func (d *Deployment) env() string {
	if d.Cells == 0 {
		return "PADDOCK_DATABASE_URL=" + d.DatabaseURL()
	}
	cells := make([]string, d.Cells)
	for i, p := range d.postgres {
		cells[i] = fmt.Sprintf("cell-%d=%s", i+1, p.DatabaseURL())
	}
	return "PADDOCK_CELL=" + strings.Join(cells, ",")
}

// InCells is a deployment of several cells. Its WAL is not measured, since it is in several databases.
type InCells struct{ system.System }
