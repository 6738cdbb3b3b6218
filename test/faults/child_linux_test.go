package faults_test

import (
	"runtime"
	"syscall"
)

// run runs the child until it ends. The kernel kills the child when the thread that started it ends,
// so that thread is kept.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err := c.cmd.Start()
	started <- err
	if err == nil {
		defer close(c.ended)
		_ = c.cmd.Wait() // the result is in ProcessState
	}
}
