package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// stopTimeout is how long a server may take to stop before it is killed.
const stopTimeout = 10 * time.Second

// Options describe a server to run.
type Options struct {
	Program string   // path, see Find
	Args    []string // arguments after the program
	Env     []string // in addition to the bench's environment
	Dir     string   // absolute path of its working directory; created by Start, removed by Stop

	// Addr is the address on which it listens when it is ready; empty if it is ready immediately.
	Addr string
}

// A Daemon is a started server.
type Daemon struct {
	opts   Options
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has been reaped
}

// Start starts a server and returns when it accepts connections. ctx bounds the start, not the
// server's lifetime. If Start fails, it removes the directory with everything in it.
func Start(ctx context.Context, opts Options) (*Daemon, error) {
	d := &Daemon{opts: opts, exited: make(chan struct{})}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	err := d.run()
	if err == nil {
		err = d.ready(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(opts.Program), errors.Join(err, d.kill(), os.RemoveAll(opts.Dir)))
	}
	return d, nil
}

// run starts the program. Pdeathsig depends on the thread that started the child, not on the process
// (go.dev/issue/27505), so one thread is kept as long as the child lives.
func (d *Daemon) run() error {
	log, err := os.Create(d.logPath())
	if err != nil {
		return err
	}
	d.cmd = exec.Command(d.opts.Program, d.opts.Args...)
	d.cmd.Dir, d.cmd.Env = d.opts.Dir, append(os.Environ(), d.opts.Env...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = attributes()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := d.cmd.Start()
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // see ProcessState
			close(d.exited)
		}
	}()
	return errors.Join(<-started, log.Close())
}

// ready tries to connect until it succeeds, the server has ended, or ctx ends.
func (d *Daemon) ready(ctx context.Context) error {
	if d.opts.Addr == "" {
		return nil
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.opts.Addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-d.exited:
			return d.exitError()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w; end of its log:\n%s", context.Cause(ctx), d.logTail())
		case <-tick.C:
		}
	}
}

// PID returns the server's process id.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Stop stops the server and removes its directory. It returns an error if the server has ended before.
// Stopping nil does nothing.
func (d *Daemon) Stop() error {
	if d == nil {
		return nil
	}
	err := d.stop()
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(d.opts.Program), err)
	}
	return errors.Join(err, os.RemoveAll(d.opts.Dir))
}

func (d *Daemon) stop() error {
	select {
	case <-d.exited:
		return d.exitError()
	default:
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-d.exited:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("killed because it did not stop within %v", stopTimeout), d.kill())
	}
}

// kill kills the server's process group.
func (d *Daemon) kill() error {
	if d.cmd == nil || d.cmd.Process == nil {
		return nil
	}
	err := syscall.Kill(-d.PID(), syscall.SIGKILL)
	<-d.exited
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// exitError returns the error for a server that ended by itself.
func (d *Daemon) exitError() error {
	return fmt.Errorf("ended unexpectedly (%v); end of its log:\n%s", d.cmd.ProcessState, d.logTail())
}

func (d *Daemon) logPath() string { return filepath.Join(d.opts.Dir, "output.log") }

// logTail returns the end of the server's output.
func (d *Daemon) logTail() string {
	const size = 2 << 10
	log, err := os.ReadFile(d.logPath())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-size):])
}
