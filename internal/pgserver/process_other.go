//go:build unix && !linux

package pgserver

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns the attributes of a child: its own process group, so that it does not receive the terminal's
// Ctrl-C. This system has no signal at the parent's death.
func attributes(a account, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential(), Setpgid: true}
}

// commandLine returns the command line of a process, joined with spaces; empty if the process has ended.
func commandLine(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", nil
	}
	return string(out), err
}

// children returns the processes whose parent is pid.
func children(pid int) ([]int, error) {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil, err
	}
	var found []int
	for line := range strings.Lines(string(out)) {
		var child, parent int
		if _, err := fmt.Sscan(line, &child, &parent); err != nil {
			return nil, err
		}
		if parent == pid {
			found = append(found, child)
		}
	}
	return found, nil
}
