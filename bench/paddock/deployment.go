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

// A Deployment is replicas of paddock serve and their PostgreSQL. Several systems may share
// it: it runs from the first Start to the last Stop.
type Deployment struct {
	Binary   string   // of paddock; empty: it is built
	Replicas int      // zero: one
	Flags    []string // for paddock serve, besides those that it needs
	Keep     bool     // what the database has and the replicas say, when they are stopped

	prefill   func(context.Context, *pgx.Conn) error // what comes before the first replica; nil: nothing
	users     int
	postgres  postgres.Database
	replicas  []*daemon.Daemon
	addresses []string
	next      atomic.Int64 // the replica that the next client goes to
}

func (d *Deployment) start(ctx context.Context, dir string) error {
	d.users++
	if d.users > 1 {
		return nil
	}
	d.postgres.Keep = d.Keep
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

// build sees to it that there is a binary, by an absolute path.
func (d *Deployment) build(ctx context.Context, dir string) error {
	var err error
	if d.Binary == "" {
		d.Binary, err = Build(ctx, dir)
		return err
	}
	d.Binary, err = filepath.Abs(d.Binary)
	return err
}

// prepare makes the tables and fills them.
func (d *Deployment) prepare(ctx context.Context) error {
	if d.prefill == nil {
		return nil // serve --migrate makes them
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

// address is that of the replica whose turn it is.
func (d *Deployment) address() string {
	return d.addresses[int(d.next.Add(1))%len(d.addresses)]
}

// Processes are the replicas and PostgreSQL.
func (d *Deployment) Processes() []system.Process {
	all := d.postgres.Processes()
	for _, r := range d.replicas {
		all = append(all, system.Process{Role: system.Server, PID: r.PID()})
	}
	return all
}

// DatabaseURL is where the locks are kept.
func (d *Deployment) DatabaseURL() string { return d.postgres.DatabaseURL() }
