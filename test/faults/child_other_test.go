//go:build !linux

package faults_test

import "syscall"

// run runs the child until it ends.
func (c *child) run(started chan<- error) {
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := c.cmd.Start()
	started <- err
	if err == nil {
		defer close(c.ended)
		_ = c.cmd.Wait() // the result is in ProcessState
	}
}
