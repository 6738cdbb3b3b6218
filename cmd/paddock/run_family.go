package main

import (
	"errors"
	"fmt"
	"syscall"
)

// A family is a command and everything that it has started, directly or not.
type family struct {
	group int // process group, and process id, of the command
	kin       // how those are found who have left the group
}

// pass sends a signal to the command's process group.
func (f family) pass(s syscall.Signal) error {
	if err := syscall.Kill(-f.group, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process group %d: %w", f.group, err)
	}
	return nil
}

// signal sends a signal to everybody in the family. Who was born meanwhile may not
// get it.
func (f family) signal(s syscall.Signal) error {
	err := f.pass(s)
	for _, pid := range f.strays(f.group) {
		if wrong := syscall.Kill(pid, s); wrong != nil && !errors.Is(wrong, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("process %d: %w", pid, wrong))
		}
	}
	return err
}

// gone is whether nobody is left. Where all who lose their parents become our children,
// that is so when we are childless.
func (f family) gone(childless bool) bool {
	if f.adopts() {
		return childless || f.alone()
	}
	return errors.Is(syscall.Kill(-f.group, 0), syscall.ESRCH)
}
