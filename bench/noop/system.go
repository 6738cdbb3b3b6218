package noop

import (
	"context"
	"os"
	"path/filepath"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/paddock"
	"github.com/paddock-lock/paddock/bench/system"
)

// Command is what the bench's own program is called with, before the address, to Serve.
const Command = "serve-noop"

// System is the handler in a process of its own, called as Paddock is.
type System struct {
	process *daemon.Daemon
	address string
}

// Name is what it is called in files.
func (*System) Name() string { return "noop" }

// Title is what it is called in tables.
func (*System) Title() string { return "net/http handler that does nothing" }

// Start starts the process.
func (s *System) Start(ctx context.Context, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if s.address, err = daemon.Addr(); err != nil {
		return err
	}
	s.process, err = daemon.Start(ctx, daemon.Options{
		Program: self, Args: []string{Command, s.address}, Dir: filepath.Join(dir, "noop"), Addr: s.address,
	})
	return err
}

// Stop ends the process.
func (s *System) Stop() error {
	err := s.process.Stop()
	s.process = nil
	return err
}

// Processes are the one.
func (s *System) Processes() []system.Process {
	if s.process == nil {
		return nil
	}
	return []system.Process{{Role: system.Server, PID: s.process.PID()}}
}

// Client returns one of Paddock's.
func (s *System) Client(context.Context) (system.Client, error) {
	return client{paddock.NewClient(s.address)}, nil
}

// A client is one of Paddock's, without batches, to whom nobody says that a lock is held.
type client struct{ system.Client }

// Acquire takes nothing, and cannot wait for it.
func (c client) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	if wait {
		return nil, system.ErrUnsupported
	}
	return c.Client.Acquire(ctx, name, false)
}
