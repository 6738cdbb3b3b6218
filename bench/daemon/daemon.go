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

// stopTimeout is how long a server has between being told to stop and being killed.
const stopTimeout = 10 * time.Second

// Options say what to run.
type Options struct {
	Program string   // its path; see Find
	Args    []string // without the program
	Env     []string // beyond our own environment
	Dir     string   // absolute; made for it, where it runs, removed by Stop

	// Keep has Stop leave the directory.
	Keep bool

	// Addr is where it answers when it is ready. Empty means that it is ready at once.
	Addr string
}

// A Daemon is a server that was started.
type Daemon struct {
	opts   Options
	cmd    *exec.Cmd
	exited chan struct{} // closed once it has been reaped
}

// Start returns when the server accepts connections. ctx bounds the starting, not the
// server's life. The directory must not hold anything that is to be kept. When it fails
// nothing is left.
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

// run starts the program. The kernel ties the signal at the parent's death to the thread that
// started the child (go.dev/issue/27505), so one thread is kept for the child's life.
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
			_ = d.cmd.Wait() // ProcessState tells
			close(d.exited)
		}
	}()
	return errors.Join(<-started, log.Close())
}

// ready tries to connect until the server lets us, has ended, or ctx ends.
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
			return fmt.Errorf("not ready: %w; its log ends:\n%s", context.Cause(ctx), d.logTail())
		case <-tick.C:
		}
	}
}

// PID is the server's process id.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Stop ends the server and removes its directory, unless that is to stay. A server that ended before is an error.
// Stopping nil does nothing.
func (d *Daemon) Stop() error {
	if d == nil {
		return nil
	}
	err := d.stop()
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(d.opts.Program), err)
	}
	if d.opts.Keep {
		return err
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
		return errors.Join(fmt.Errorf("killed, because it did not stop in %v", stopTimeout), d.kill())
	}
}

// kill ends the server at once, and all that it has started.
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

// exitError is the error for a server that ended by itself.
func (d *Daemon) exitError() error {
	return fmt.Errorf("it ended by itself (%v); its log ends:\n%s", d.cmd.ProcessState, d.logTail())
}

func (d *Daemon) logPath() string { return filepath.Join(d.opts.Dir, "output.log") }

// logTail is the end of the server's output.
func (d *Daemon) logTail() string {
	const most = 2 << 10
	log, err := os.ReadFile(d.logPath())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-most):])
}
