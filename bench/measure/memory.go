package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// Memory returns the private memory of processes and their descendants, in bytes. It excludes shared
// memory such as PostgreSQL's buffers.
func Memory(of []system.Process) (map[system.Role]int64, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	roots, roles := map[int]time.Duration{}, map[int]system.Role{}
	for _, p := range of {
		roots[p.PID], roles[p.PID] = 0, p.Role
	}
	sums := map[system.Role]int64{}
	for pid := range all {
		root, ok := rootOf(pid, all, roots)
		if !ok {
			continue
		}
		bytes, err := anonymous(pid)
		if err != nil {
			return nil, err
		}
		sums[roles[root]] += bytes
	}
	return sums, nil
}

// anonymous returns the anonymous memory of a process, zero if it has ended.
func anonymous(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	match := regexp.MustCompile(`(?m)^RssAnon:\s*(\d+) kB$`).FindSubmatch(text)
	if match == nil {
		return 0, nil // a kernel thread or a process that is ending
	}
	kB, err := strconv.ParseInt(string(match[1]), 10, 64)
	return kB << 10, err
}
