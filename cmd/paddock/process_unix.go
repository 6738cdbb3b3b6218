//go:build unix

package main

import (
	"errors"
	"math"
	"os/exec"
	"syscall"
	"time"
)

// processTime returns how long the process has used processors.
func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0 // it fails only for another argument
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// openFileLimit returns how many files this process may have open. The Go runtime has raised the soft limit to the
// hard one before main. It returns the greatest number if the limit is unknown.
func openFileLimit() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur)
}

// ownGroup starts the command in a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// pause stops the process, and returns when it has stopped.
func (w *worker) pause() error {
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(w.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case status.Stopped():
			return nil
		default:
			return errors.New("worker A ended before it could be paused")
		}
	}
}

func (w *worker) resume() error { return w.cmd.Process.Signal(syscall.SIGCONT) }
