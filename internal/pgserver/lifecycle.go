//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

var errStopped = errors.New("postgres: the server has been stopped and cannot restart")

// Stop shuts the server down cleanly: clients are disconnected and open transactions rolled back. If ctx ends first,
// the server is killed and the error says so. In both cases the directory is released, and removed if it is
// temporary. A second Stop does nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	return errors.Join(s.shutdown(ctx), s.dataDir.close())
}

func (s *Server) shutdown(ctx context.Context) error {
	err := s.process.cmd.Process.Signal(syscall.SIGINT)
	if errors.Is(err, os.ErrProcessDone) {
		<-s.process.exited
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case <-s.process.exited:
		return nil
	case <-ctx.Done():
		return errors.Join(
			fmt.Errorf("postgres: the server did not stop in time and was killed: %w", context.Cause(ctx)),
			s.kill(),
		)
	}
}

// Kill ends the server and all its children like a crash, and returns when they have ended. The directory stays
// claimed for Restart until Stop. Killing an ended server does nothing. As after any crash, a few bytes of shared
// memory stay allocated until a server runs on the same data again.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	parent := s.process.cmd.Process
	err := parent.Signal(syscall.SIGSTOP) // so that it starts no more children
	if errors.Is(err, os.ErrProcessDone) {
		<-s.process.exited
		return nil
	}
	if err != nil {
		return err
	}
	pids, err := children(parent.Pid)
	for _, pid := range pids {
		if e := syscall.Kill(pid, syscall.SIGKILL); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	err = errors.Join(err, parent.Kill())
	<-s.process.exited
	return err
}

// Restart starts a server that was killed or crashed, with the same data and URL. It does nothing to a running
// server.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	if s.process.running() {
		return nil
	}
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}
