package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/internal/pgserver"
)

// Settings returns the PostgreSQL settings of all systems, as for a small production server with about
// 4 GB. fsync, full_page_writes, synchronous_commit and autovacuum are on, as by default. There are
// connections for 256 clients with one each, and enough WAL space that no checkpoint is forced during a
// short run.
func Settings() map[string]string {
	return map[string]string{
		"max_connections": "400",
		"shared_buffers":  "1GB",
		"max_wal_size":    "4GB",
	}
}

// A Database is a PostgreSQL server with one database.
type Database struct {
	server *pgserver.Server
	dir    string
	log    *os.File
}

// name is the name of the database.
const name = "bench"

// Start starts the server. PostgreSQL's user must be able to enter the directory.
func (d *Database) Start(ctx context.Context, dir string) (err error) {
	d.dir = filepath.Join(dir, "postgres")
	if d.log, err = os.Create(d.dir + ".log"); err != nil {
		return err
	}
	d.server, err = pgserver.Start(ctx, pgserver.Options{Dir: d.dir, Database: name, Settings: Settings(), Stderr: d.log})
	if errors.Is(err, pgserver.ErrNotFound) {
		err = errors.Join(daemon.Missing("PostgreSQL", "postgresql"), err)
	}
	return err
}

// Stop stops the server and removes its data. It does nothing if the server does not run.
func (d *Database) Stop() error {
	if d.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := d.server.Stop(ctx)
	d.server = nil
	err = errors.Join(err, d.log.Close())
	return errors.Join(err, os.RemoveAll(d.dir), os.Remove(d.log.Name()))
}

// Target implements front.Backend: it returns the database URL.
func (d *Database) Target() string { return d.server.URL(name) }

// DatabaseURL implements system.PostgresBacked.
func (d *Database) DatabaseURL() string { return d.Target() }

// Processes returns the postmaster, the parent of the other processes.
func (d *Database) Processes() []system.Process {
	if d.server == nil {
		return nil
	}
	pid, err := postmaster(d.server.Dir())
	if err != nil {
		return nil // the server has ended
	}
	return []system.Process{{Role: system.Database, PID: pid}}
}

// postmaster reads the process id from postmaster.pid.
func postmaster(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0, fmt.Errorf("postmaster.pid: %w", err)
	}
	return pid, nil
}
