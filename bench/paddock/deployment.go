package paddock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/postgres"
	"github.com/paddock-lock/paddock/bench/system"
)

// A Deployment consists of replicas of paddock serve and their PostgreSQL. Several systems may share it;
// it runs from the first Start to the last Stop.
type Deployment struct {
	Binary   string   // path of paddock; empty to build it
	Replicas int      // zero means one
	Flags    []string // additional flags for paddock serve

	prefill   func(context.Context, *pgx.Conn) error // called before the first replica starts; may be nil
	users     int
	postgres  postgres.Database
	replicas  []*daemon.Daemon
	addresses []string
	next      atomic.Int64 // index of the replica for the next client
}

func (d *Deployment) start(ctx context.Context, dir string) error {
	d.users++
	if d.users > 1 {
		return nil
	}
	if err := d.postgres.Start(ctx, dir); err != nil {
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

// prepare creates and prefills the tables, if there is a prefill function.
func (d *Deployment) prepare(ctx context.Context) error {
	if d.prefill == nil {
		return nil // serve --migrate creates the tables
	}
	if err := d.migrate(ctx); err != nil {
		return err
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
	d.replicas, d.addresses = nil, nil
	return errors.Join(err, d.postgres.Stop())
}

// address returns the addresses of the replicas in turn.
func (d *Deployment) address() string {
	return d.addresses[int(d.next.Add(1))%len(d.addresses)]
}

// Processes implements system.System.
func (d *Deployment) Processes() []system.Process {
	all := d.postgres.Processes()
	for _, r := range d.replicas {
		all = append(all, system.Process{Role: system.Server, PID: r.PID()})
	}
	return all
}

// DatabaseURL implements system.PostgresBacked.
func (d *Deployment) DatabaseURL() string { return d.postgres.DatabaseURL() }
