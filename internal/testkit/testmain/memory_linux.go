package testmain

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const (
	// memoryDir is where Linux has files in memory.
	memoryDir = "/dev/shm"
	// leastRoom is how many bytes must be free there, and in memory. The tests of the root module take half a gibibyte.
	leastRoom = 4 << 30
)

// useMemory sets TMPDIR to a directory in memory, for this process and the processes it starts. It does nothing if
// TMPDIR is already set or if memory is short.
//
// Each test has a database of its own, which is hundreds of small files that live for a second. A file system on disk
// spends more on creating and removing them than PostgreSQL does on the tests: ext4 without a journal passes over the
// numbers of the inodes that were freed in the last seconds, one after the other, for each new file.
func useMemory() error {
	if os.Getenv("TMPDIR") != "" || min(room(memoryDir), availableMemory()) < leastRoom {
		return nil
	}
	return os.Setenv("TMPDIR", memoryDir)
}

// room returns how many bytes this user's files may have in dir, zero if there may be none.
func room(dir string) uint64 {
	probe, err := os.MkdirTemp(dir, "paddock-room-")
	if err == nil {
		err = os.Remove(probe)
	}
	var fs syscall.Statfs_t
	if err == nil {
		err = syscall.Statfs(dir, &fs)
	}
	if err != nil {
		return 0 // a container that does not offer it
	}
	return fs.Bavail * uint64(fs.Bsize)
}

// availableMemory returns how many bytes programs may still use, zero if the system does not tell.
func availableMemory() uint64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // it is only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kibibytes, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // zero if it is no number
			return kibibytes << 10
		}
	}
	return 0
}
