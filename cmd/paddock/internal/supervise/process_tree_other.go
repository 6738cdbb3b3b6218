//go:build unix && !linux

package supervise

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes returns how a command is started: in a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// descendants is empty: only Linux finds processes that have left the group.
type descendants struct{}

func newProcessTree() processTree { return processTree{} }

func (descendants) adopts() bool { return false }

func (descendants) onlyOthersLeft() bool { return false }

func (descendants) outside(int) []int { return nil }

// hasJobControl reports whether another process of our session would see that our group was stopped, and could
// continue it. It considers our parent only.
func hasJobControl() bool {
	parent, err := unix.Getpgid(os.Getppid())
	if err != nil || parent == unix.Getpgrp() {
		return false
	}
	theirs, err := unix.Getsid(os.Getppid())
	ours, failed := unix.Getsid(0)
	return err == nil && failed == nil && theirs == ours
}

// stopSelf stops this process. It returns when the process is continued.
func stopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
