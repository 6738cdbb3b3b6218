package front

import (
	"context"
	"errors"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/lean"
	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// A Backend is a system that a front can serve.
type Backend interface {
	system.System
	// Target returns the argument for the front's Open. It is valid while the system runs.
	Target() string
}

// A System is a Backend behind a front.
type System struct {
	name, title, kind string

	backend Backend
	daemon  *daemon.Daemon
	addr    string
}

// New returns a system with the name and title. The kind selects the front's Open function.
func New(name, title, kind string, backend Backend) *System {
	return &System{name: name, title: title, kind: kind, backend: backend}
}

// Name implements system.System.
func (s *System) Name() string { return s.name }

// Title implements system.System.
func (s *System) Title() string { return s.title }

// Start implements system.System.
func (s *System) Start(ctx context.Context, dir string) (err error) {
	if err := s.backend.Start(ctx, dir); err != nil {
		return err
	}
	s.daemon, s.addr, err = start(ctx, dir, s.kind, s.backend.Target())
	return err
}

// Stop implements system.System.
func (s *System) Stop() error {
	err := s.daemon.Stop()
	s.daemon = nil
	return errors.Join(err, s.backend.Stop())
}

// Processes implements system.System.
func (s *System) Processes() []system.Process {
	if s.daemon == nil {
		return s.backend.Processes()
	}
	return append(s.backend.Processes(), system.Process{Role: system.Server, PID: s.daemon.PID()})
}

// Client implements system.System.
func (s *System) Client(context.Context) (system.Client, error) {
	conn := lean.New(s.addr, "")
	return lease.NewClient(&httpStore{conn: conn}, conn.Close), nil
}
