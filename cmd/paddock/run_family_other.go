//go:build !linux

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes returns how a command is started: in a process group of its own. Only
// Linux kills it if we are killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// The kin are nobody: only Linux finds those who have left the group.
type kin struct{}

func newFamily() family { return family{} }

func (kin) adopts() bool { return false }

func (kin) alone() bool { return false }

func (kin) strays(int) []int { return nil }

// stoppable is whether our process group has somebody in its session who would see
// that it was stopped, and could have it go on. Of the group it knows us alone.
func stoppable() bool {
	parent, err := unix.Getpgid(os.Getppid())
	if err != nil || parent == unix.Getpgrp() {
		return false
	}
	theirs, err := unix.Getsid(os.Getppid())
	ours, wrong := unix.Getsid(0)
	return err == nil && wrong == nil && theirs == ours
}

// halt stops us. It returns when we go on.
func halt() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
