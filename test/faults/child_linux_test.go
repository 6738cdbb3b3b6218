package faults_test

import (
	"runtime"
	"syscall"
)

// run runs the child to its end. The kernel kills it when the thread that started it
// is gone, and so one is kept for that.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err := c.cmd.Start()
	started <- err
	if err == nil {
		defer close(c.ended)
		_ = c.cmd.Wait() // how it ended is in its ProcessState
	}
}
