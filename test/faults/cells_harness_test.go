package faults_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify/workload"
)

// cellNames are the cells of a deployment of several, in the order of their positions.
var cellNames = [...]string{"first", "second", "third"}

// cells are a deployment of two replicas over three cells, each on a PostgreSQL server of its own.
type cells struct {
	*testing.T
	program   string
	databases []*database // of cellNames
	addresses []string    // of the replicas
	services  []workload.Replica
}

// newCells starts a deployment that ends with the test.
func newCells(t *testing.T, program string) *cells {
	t.Helper()
	c := &cells{T: t, program: program, databases: make([]*database, len(cellNames))}
	errs := make([]error, len(cellNames))
	var all sync.WaitGroup
	for i := range cellNames {
		all.Go(func() { c.databases[i], errs[i] = newDatabase(t.Context()) })
	}
	all.Wait()
	for i, db := range c.databases {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		cleanup(t, db.host.Close)
	}
	if output, err := c.paddock(t.Context(), "migrate", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for range 2 {
		c.serve()
	}
	return c
}

// env names the cells to a program, so that no password is in a list of processes.
func (c *cells) env() string {
	all := make([]string, len(cellNames))
	for i, name := range cellNames {
		db := c.databases[i]
		all[i] = name + "=" + db.url(url.Values{"host": {db.host.SocketDir()}, "port": {"5432"}}, "", "paddock")
	}
	return "PADDOCK_CELL=" + strings.Join(all, ",")
}

// paddock returns a command of the program, for the databases of all cells.
func (c *cells) paddock(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Env = append(os.Environ(), c.env())
	return cmd
}

// serve starts another replica.
func (c *cells) serve() {
	c.Helper()
	_, address := serve(c.T, c.program, []string{c.env()}, "--allow-hold")
	c.addresses = append(c.addresses, address)
	c.services = append(c.services, replicaAt(c.T, address))
}

// clients returns a client of each replica.
func (c *cells) clients() []*client.Client {
	c.Helper()
	all := make([]*client.Client, len(c.addresses))
	for i, address := range c.addresses {
		one, err := client.New(client.Options{BaseURL: "http://" + address})
		if err != nil {
			c.Fatal(err)
		}
		all[i] = one
	}
	return all
}

// homeOf returns the cell that is the home of the group.
func homeOf(group string) string {
	all := make([]placement.Cell, len(cellNames))
	for i, name := range cellNames {
		all[i] = placement.Cell{Name: name, Position: i, Takes: true}
	}
	return placement.Home(group, all)
}

// groupAt returns a group whose home is the cell.
func groupAt(cell string) string {
	for i := 0; ; i++ {
		if group := fmt.Sprint("team-", i); homeOf(group) == cell {
			return group
		}
	}
}

// showPlace acquires and releases a lock of the prefix. The events tell package verify where the group is: it knows of a
// move by events from another cell, so it would miss two moves, there and back, without an event in between.
func showPlace(ctx context.Context, locks paddock.Service, prefix string) error {
	a := lock.Acquire{Locks: lock.One(prefix + ":place"), LeaseID: lock.LeaseID(uuid.New()), Holder: "mover", TTL: time.Second}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for {
		_, err := locks.Acquire(ctx, a)
		if err == nil {
			return locks.Release(ctx, lock.Release{Locks: a.Names(), LeaseID: a.LeaseID})
		}
		if !sleepFor(ctx, 10*time.Millisecond) {
			return err
		}
	}
}
