package main

import (
	"errors"
	"math"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// processTime returns how long the process has used processors.
func processTime() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		return 0
	}
	return time.Duration(ticks(kernel)+ticks(user)) * 100 // nanoseconds
}

func ticks(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }

// openFileLimit returns the greatest number: Windows has no such limit.
func openFileLimit() uint64 { return math.MaxUint64 }

// ownGroup starts the command in a process group of its own.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// errNoPause says why the demo ends.
var errNoPause = errors.New("Windows cannot pause a process; run paddock demo on another system")

func (w *worker) pause() error { return errNoPause }

func (w *worker) resume() error { return errNoPause }
