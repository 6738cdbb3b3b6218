package main

import (
	"errors"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A terminal is the one that controls us. It is lent to the command, whose process
// group is its foreground then, as that of a shell's job is. The nil terminal stands
// for none.
type terminal struct {
	fd    int
	own   int  // our process group
	group int  // the command's
	wants bool // the command uses it
	modes *term.State
}

// openTerminal returns the terminal that controls us. A command with its input and output
// there wants it from the beginning. In a pipeline it may be somebody else who reads from
// it, so there the command has to ask: it does so by reading, and is stopped for that.
func openTerminal(group int) *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	signal.Ignore(syscall.SIGTTOU) // or who is not in the foreground is stopped for bringing somebody there
	return &terminal{fd: fd, own: unix.Getpgrp(), group: group, wants: controls(syscall.Stdin) && controls(syscall.Stdout)}
}

// controls is whether that is the terminal that controls us.
func controls(fd int) bool {
	_, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil
}

// lend brings the command to the foreground if that is where we are, and returns
// whether it is there now.
func (t *terminal) lend() bool {
	if t == nil {
		return false
	}
	t.wants = true
	if t.foreground() == t.own {
		if state, err := term.GetState(t.fd); err == nil && t.modes == nil {
			t.modes = state
		}
		t.bring(t.group)
	}
	return t.lent()
}

// relend lends the terminal to a command that wants it, and returns whether it has it.
func (t *terminal) relend() bool { return t != nil && t.wants && t.lend() }

// lent is whether the command is in the foreground.
func (t *terminal) lent() bool { return t != nil && t.foreground() == t.group }

// takeBack brings us to the foreground in the place of the command, or of somebody who
// is no more. It returns whether we are there now.
func (t *terminal) takeBack() bool {
	now := t.foreground()
	if now == t.group || errors.Is(unix.Kill(-now, 0), unix.ESRCH) {
		t.bring(t.own)
	}
	return t.foreground() == t.own
}

// close takes the terminal back for good, in the modes that it was lent in if the
// command had no chance to restore them.
func (t *terminal) close(killed bool) {
	if t == nil {
		return
	}
	if t.takeBack() && killed && t.modes != nil {
		_ = term.Restore(t.fd, t.modes) // or it was hung up
	}
	_ = unix.Close(t.fd)
}

// foreground returns the process group that is in the foreground, zero if there is
// no such any more.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// bring brings a process group to the foreground. If the terminal was hung up it is of
// no consequence.
func (t *terminal) bring(group int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) }
