package front

import (
	"context"
	"errors"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/lean"
	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// A Backend is a system that a front can stand before.
type Backend interface {
	system.System
	// Target is where it is, as the front's Open is told. It is known once it runs.
	Target() string
}

// A System is a Backend with a front before it.
type System struct {
	name, title, kind string

	backend Backend
	daemon  *daemon.Daemon
	addr    string
}

// New returns a system with that name and title, whose front opens the store by the kind.
func New(name, title, kind string, behind Backend) *System {
	return &System{name: name, title: title, kind: kind, backend: behind}
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
