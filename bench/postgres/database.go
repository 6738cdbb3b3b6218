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

// Settings are those of the server, for all who use one: what a small one in earnest has, of 4 GB
// or so. What keeps data safe (fsync, full_page_writes, synchronous_commit) is on, as it is by
// default, and so is autovacuum. There are connections for 256 clients that need one each, and
// room enough in the log that no checkpoint is forced in the middle of a short run.
func Settings() map[string]string {
	return map[string]string{
		"max_connections": "400",
		"shared_buffers":  "1GB",
		"max_wal_size":    "4GB",
	}
}

// A Database is a server with a database in it.
type Database struct {
	Keep bool // what is in it, and its log, when it is stopped

	server *pgserver.Server
	dir    string
	log    *os.File
}

// name is the database's.
const name = "bench"

// Start starts it. Who runs PostgreSQL must be able to enter the directory.
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

// Stop ends it and removes what it has kept, unless that is to stay. Stopping one that does not run does nothing.
func (d *Database) Stop() error {
	if d.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := d.server.Stop(ctx)
	d.server = nil
	err = errors.Join(err, d.log.Close())
	if d.Keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(d.dir), os.Remove(d.log.Name()))
}

// Target is its URL.
func (d *Database) Target() string { return d.server.URL(name) }

// DatabaseURL implements system.Databased.
func (d *Database) DatabaseURL() string { return d.Target() }

// Processes is its main process, whose children the others are.
func (d *Database) Processes() []system.Process {
	if d.server == nil {
		return nil
	}
	pid, err := postmaster(d.server.Dir())
	if err != nil {
		return nil // it has ended
	}
	return []system.Process{{Role: system.Database, PID: pid}}
}

// postmaster is the process id that a server notes in its directory.
func postmaster(dir string) (int, error) {
	note, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(note), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0, fmt.Errorf("postmaster.pid: %w", err)
	}
	return pid, nil
}
