//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A Host is a temporary directory for one server, whose data and arguments the caller controls: package pgcluster
// runs primaries and standbys. Account, directories and the end with the parent are as for a Server. Its methods must
// not run concurrently.
type Host struct {
	bin     string
	dataDir *dataDir
	process *process // nil before the first Launch
}

// NewHost claims a new directory without data, for a server of the installed or fetched programs. They include those
// that are named, for Run. The error wraps ErrNotFound if there are none.
func NewHost(ctx context.Context, programs ...string) (*Host, error) {
	bin, err := Find(ctx, programs...)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	home, err := openTemporary(ctx)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return &Host{bin: bin, dataDir: home}, nil
}

// Path returns the absolute path of a file in the directory. The server's data is in "data".
func (h *Host) Path(name string) string { return filepath.Join(h.dataDir.dir, name) }

// SocketDir returns the directory for the server's socket. Only the account can enter it.
func (h *Host) SocketDir() string { return h.dataDir.socketDir() }

// Initialise creates an empty data directory with the superuser paddock, see Options.Cached.
func (h *Host) Initialise(ctx context.Context) error { return h.dataDir.initialiseCached(ctx, h.bin) }

// WriteFile writes a file in the directory that only the server's account can read.
func (h *Host) WriteFile(name, content string) error {
	if err := os.WriteFile(h.Path(name), []byte(content), 0o600); err != nil {
		return err
	}
	return h.dataDir.account.chown(h.Path(name))
}

// Run runs another PostgreSQL program, such as pg_basebackup, in the directory and as the server's account. It is
// killed if ctx ends first.
func (h *Host) Run(ctx context.Context, program string, args ...string) error {
	p, err := start(h.dataDir.command(h.bin, program, syscall.SIGKILL, args...), nil)
	if err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.exited
		return errors.Join(fmt.Errorf("%s: %w", program, context.Cause(ctx)), err)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", program, p.err, p.log)
	}
	return nil
}

// Launch starts the server with further arguments and does not wait until it answers. The server logs to log, which
// may be nil.
func (h *Host) Launch(ctx context.Context, log io.Writer, args ...string) error {
	if h.Running() {
		return errors.New("postgres: the host already runs a server")
	}
	if err := errors.Join(h.dataDir.stopOrphan(ctx), h.dataDir.makeSocketDir()); err != nil {
		return err
	}
	args = append([]string{"-D", h.dataDir.pgData()}, args...)
	p, err := start(h.dataDir.command(h.bin, "postgres", syscall.SIGQUIT, args...), log)
	if err != nil {
		return err
	}
	h.process = p
	return nil
}

// Running reports whether the server's main process exists, stopped or not.
func (h *Host) Running() bool { return h.process != nil && h.process.running() }

// LogTail returns the end of the server's log, for errors.
func (h *Host) LogTail() string {
	if h.process == nil {
		return ""
	}
	return h.process.log.String()
}

// Kill ends the server and all its children like a crash, and returns when they have ended. Killing an ended server
// does nothing.
func (h *Host) Kill() error {
	if !h.Running() {
		return nil
	}
	err := h.signalAll(syscall.SIGKILL)
	<-h.process.exited
	return err
}

// Pause stops the server and all its children. The kernel still acknowledges data that is sent to them.
func (h *Host) Pause() error { return h.signalAll(syscall.SIGSTOP) }

// Resume continues a paused server.
func (h *Host) Resume() error { return h.signalAll(syscall.SIGCONT) }

// signalAll sends a signal to the children of the main process and then to itself. It stops the main process first,
// so that it starts no more children.
func (h *Host) signalAll(signal syscall.Signal) error {
	if !h.Running() {
		return nil
	}
	parent := h.process.cmd.Process
	err := parent.Signal(syscall.SIGSTOP)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return err
	}
	pids, err := children(parent.Pid)
	for _, pid := range pids {
		if e := syscall.Kill(pid, signal); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, parent.Signal(signal))
}

// Shutdown shuts the server down cleanly: clients are disconnected, and standbys receive everything. If ctx ends
// first, the server is killed and the error says so.
func (h *Host) Shutdown(ctx context.Context) error { return h.end(ctx, syscall.SIGINT) }

// StopAtOnce ends the server without a checkpoint: PostgreSQL's immediate shutdown, after which it recovers as after
// a crash. If ctx ends first, the server is killed and the error says so.
func (h *Host) StopAtOnce(ctx context.Context) error { return h.end(ctx, syscall.SIGQUIT) }

// Close ends the server and removes the directory with its data.
func (h *Host) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(h.end(ctx, syscall.SIGQUIT), h.dataDir.close())
}

// end sends the signal to the server and waits until it has ended. It kills the server if ctx ends first.
func (h *Host) end(ctx context.Context, s syscall.Signal) error {
	if !h.Running() {
		return nil
	}
	if err := errors.Join(h.Resume(), h.process.cmd.Process.Signal(s)); err != nil &&
		!errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-h.process.exited:
		return nil
	case <-ctx.Done():
		return errors.Join(
			fmt.Errorf("postgres: the server did not stop in time and was killed: %w", context.Cause(ctx)),
			h.Kill(),
		)
	}
}
