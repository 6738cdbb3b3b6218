//go:build unix

package supervise

import (
	"errors"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A terminal is the controlling terminal of this process. It is lent to the command: the command's process group
// becomes the foreground group, as a shell does it for a job. A nil terminal means that there is none.
type terminal struct {
	fd    int
	own   int  // our process group
	group int  // the command's
	wants bool // the command uses the terminal
	modes *term.State
}

// openTerminal returns the controlling terminal. A command with its input and output there wants it from the
// beginning. In a pipeline another process may read from it, so the command has to ask: it does so by reading, for
// which it is stopped.
func openTerminal(group int) *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	signal.Ignore(syscall.SIGTTOU) // else a background process that changes the foreground group is stopped
	return &terminal{fd: fd, own: unix.Getpgrp(), group: group,
		wants: isTerminal(syscall.Stdin) && isTerminal(syscall.Stdout)}
}

// isTerminal reports whether the file is our controlling terminal.
func isTerminal(fd int) bool {
	_, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil
}

// lend brings the command to the foreground if this process is there, and reports whether the command is there now.
func (t *terminal) lend() bool {
	if t == nil {
		return false
	}
	t.wants = true
	if t.foreground() == t.own {
		if state, err := term.GetState(t.fd); err == nil && t.modes == nil {
			t.modes = state
		}
		t.setForeground(t.group)
	}
	return t.isLent()
}

// lendIfWanted lends the terminal to a command that uses it.
func (t *terminal) lendIfWanted() {
	if t != nil && t.wants {
		t.lend()
	}
}

// isLent reports whether the command is in the foreground.
func (t *terminal) isLent() bool { return t != nil && t.foreground() == t.group }

// takeBack brings this process to the foreground if the command is there, or a group that no longer exists. It
// reports whether this process is there now.
func (t *terminal) takeBack() bool {
	now := t.foreground()
	if now == t.group || errors.Is(unix.Kill(-now, 0), unix.ESRCH) {
		t.setForeground(t.own)
	}
	return t.foreground() == t.own
}

// close takes the terminal back, and restores its modes if the command was killed before it could.
func (t *terminal) close(killed bool) {
	if t == nil {
		return
	}
	if t.takeBack() && killed && t.modes != nil {
		_ = term.Restore(t.fd, t.modes) // fails after a hang-up
	}
	_ = unix.Close(t.fd)
}

// foreground returns the foreground process group, zero after a hang-up.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// setForeground makes a process group the foreground group. After a hang-up its failure does not matter.
func (t *terminal) setForeground(group int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) }
