//go:build !linux

package faults_test

import "syscall"

// run runs the child to its end.
func (c *child) run(started chan<- error) {
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := c.cmd.Start()
	started <- err
	if err == nil {
		defer close(c.ended)
		_ = c.cmd.Wait() // how it ended is in its ProcessState
	}
}
