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
)

// Memory returns the private memory of a process and its descendants, in bytes. It excludes shared
// memory such as PostgreSQL's buffers.
func Memory(root int) (int64, error) {
	all, err := processes()
	if err != nil {
		return 0, err
	}
	if _, ok := all[root]; !ok {
		return 0, fmt.Errorf("process %d is gone", root)
	}
	var sum int64
	for pid := range all {
		if _, ok := rootOf(pid, all, map[int]time.Duration{root: 0}); !ok {
			continue
		}
		bytes, err := anonymous(pid)
		if err != nil {
			return 0, err
		}
		sum += bytes
	}
	return sum, nil
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
