package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

var errStopped = errors.New("postgres: the server has been stopped for good")

// Stop shuts the server down in good order: clients are cut off, open
// transactions rolled back. When ctx ends first, the server is killed and the
// error says so. Either way the directory is given up, and removed if it was
// temporary. Stopping again does nothing.
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
		return errors.Join(fmt.Errorf("postgres: killed, because it did not stop in time: %w", context.Cause(ctx)), s.kill())
	}
}

// Kill ends the server and all its children at once, as a crash does, and
// returns when they are gone. The directory stays claimed: Restart brings the
// server back, Stop gives the directory up. Killing what has ended does nothing.
// As after any crash, a few bytes of the system's shared memory stay taken until
// a server runs on the same data again.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	parent := s.process.cmd.Process
	err := parent.Signal(syscall.SIGSTOP) // from here on it starts no more children
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

// Restart starts a server that was killed, or that crashed, on the same data
// and at the same URL. A server that is running is left alone.
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
