package pgserver

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes put a child into a process group of its own, out of the way of
// the terminal's Ctrl-C, and have the kernel send it died when the thread that
// started it ends.
func attributes(a account, died syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential(), Setpgid: true, Pdeathsig: died}
}

// commandLine is the command line of a process, its words set apart by spaces;
// empty for a process that is gone or is a zombie.
func commandLine(pid int) (string, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if gone(err) {
		return "", nil
	}
	return strings.ReplaceAll(string(line), "\x00", " "), err
}

// children are the processes whose parent is pid.
func children(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// pid (name) state parent …, and the name may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found, nil
}

// gone reports that a file of /proc could not be read because its process ended.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}
