package noop

import (
	"context"
	"os"
	"path/filepath"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/paddock"
	"github.com/paddock-lock/paddock/bench/system"
)

// Command is the command of the bench that calls Serve; its argument is the address.
const Command = "serve-noop"

// System is the handler in its own process, with Paddock's client.
type System struct {
	process *daemon.Daemon
	address string
}

// Name implements system.System.
func (*System) Name() string { return "noop" }

// Title implements system.System.
func (*System) Title() string { return "net/http handler that does nothing" }

// Start implements system.System.
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

// Stop implements system.System.
func (s *System) Stop() error {
	err := s.process.Stop()
	s.process = nil
	return err
}

// Processes implements system.System.
func (s *System) Processes() []system.Process {
	if s.process == nil {
		return nil
	}
	return []system.Process{{Role: system.Server, PID: s.process.PID()}}
}

// Client implements system.System.
func (s *System) Client(context.Context) (system.Client, error) {
	return client{paddock.NewClient(s.address)}, nil
}

// A client is Paddock's client without batches. Its locks are never held.
type client struct{ system.Client }

// Acquire implements system.Client. It cannot wait.
func (c client) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	if wait {
		return nil, system.ErrUnsupported
	}
	return c.Client.Acquire(ctx, name, false)
}
