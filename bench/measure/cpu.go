package measure

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of CPU times in /proc, which is 1/USER_HZ on all Linux systems.
const tick = 10 * time.Millisecond

// A stat is the relevant part of /proc/PID/stat.
type stat struct {
	parent int
	cpu    time.Duration // including children that it has waited for
}

// Trees returns the CPU time of each root process and its descendants, by process id.
func Trees(roots []int) (map[int]time.Duration, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	sums := map[int]time.Duration{}
	for _, root := range roots {
		if _, ok := all[root]; !ok {
			return nil, fmt.Errorf("process %d is gone", root)
		}
		sums[root] = 0
	}
	for pid, s := range all {
		if root, ok := rootOf(pid, all, sums); ok {
			sums[root] += s.cpu
		}
	}
	return sums, nil
}

// rootOf returns the root that a process descends from, if there is one.
func rootOf(pid int, all map[int]stat, roots map[int]time.Duration) (int, bool) {
	for pid > 0 {
		if _, ok := roots[pid]; ok {
			return pid, true
		}
		pid = all[pid].parent
	}
	return 0, false
}

func processes() (map[int]stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("reading the CPU time of processes from /proc: %w", err)
	}
	all := map[int]stat{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // not a process
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the process has ended
		}
		if err != nil {
			return nil, err
		}
		if all[pid], err = parse(text); err != nil {
			return nil, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	return all, nil
}

// parse parses /proc/PID/stat. The process name is in parentheses and may contain any character.
func parse(text []byte) (stat, error) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return stat{}, fmt.Errorf("only %d fields", len(fields))
	}
	parent, err := strconv.Atoi(string(fields[1]))
	s := stat{parent: parent}
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, e := strconv.ParseInt(string(f), 10, 64)
		err = errors.Join(err, e)
		s.cpu += time.Duration(n) * tick
	}
	return s, err
}

// Own returns the CPU time of this process.
func Own() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
