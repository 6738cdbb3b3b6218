package daemon

import "syscall"

// attributes put a child into a process group of its own, and have the kernel kill it when the
// thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
