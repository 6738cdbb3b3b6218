//go:build !linux

package daemon

import "syscall"

// attributes puts a child into its own process group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
