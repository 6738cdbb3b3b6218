//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"syscall"
)

// A processTree is a command and all its descendants.
type processTree struct {
	group       int // process group, and process id, of the command
	descendants     // finds processes that have left the group
}

// signalGroup sends a signal to the command's process group.
func (t processTree) signalGroup(s syscall.Signal) error {
	if err := syscall.Kill(-t.group, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process group %d: %w", t.group, err)
	}
	return nil
}

// signal sends a signal to every process of the tree. Processes that are created meanwhile may not get it.
func (t processTree) signal(s syscall.Signal) error {
	err := t.signalGroup(s)
	for _, pid := range t.outside(t.group) {
		if failed := syscall.Kill(pid, s); failed != nil && !errors.Is(failed, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("process %d: %w", pid, failed))
		}
	}
	return err
}

// gone reports whether no process of the tree is left. If orphans become our children, that is so when we have no
// child.
func (t processTree) gone(childless bool) bool {
	if t.adopts() {
		return childless || t.onlyOthersLeft()
	}
	return errors.Is(syscall.Kill(-t.group, 0), syscall.ESRCH)
}
