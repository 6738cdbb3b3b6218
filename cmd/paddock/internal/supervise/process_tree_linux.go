package supervise

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes returns how a command is started: in a process group of its own, and killed by the kernel when this
// process is. The kernel does not kill its descendants.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// descendants are the processes that descend from this one, but not by way of a child that it had before the command
// was started.
type descendants struct {
	adopting bool
	before   map[int]bool // children from before; a process that became ours by exec may have some
}

// newProcessTree returns the tree of a command that is about to be started. From now on every orphaned descendant
// becomes our child, in whatever session it is.
func newProcessTree() processTree {
	all, err := processes()
	t := processTree{descendants: descendants{before: map[int]bool{}}}
	if _, found := all[os.Getpid()]; err != nil || !found {
		return t // without /proc, processes that leave the group could not be found
	}
	t.adopting = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
	for pid, p := range all {
		if p.parent == os.Getpid() {
			t.before[pid] = true
		}
	}
	return t
}

func (d descendants) adopts() bool { return d.adopting }

// onlyOthersLeft reports whether all our children are from before and no descendant is left.
func (d descendants) onlyOthersLeft() bool { return len(d.before) > 0 && len(d.outside(0)) == 0 }

// outside returns the descendants that are not in the process group.
func (d descendants) outside(group int) []int {
	all, err := processes()
	if err != nil || !d.adopting {
		return nil
	}
	var pids []int
	for pid, p := range all {
		if p.group != group && d.contains(pid, all) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// contains reports whether the process is a descendant.
func (d descendants) contains(pid int, all map[int]process) bool {
	for range len(all) { // a bound: parents that were read at different times may form a circle
		p, known := all[pid]
		switch {
		case !known || d.before[pid]:
			return false
		case p.parent == os.Getpid():
			return true
		}
		pid = p.parent
	}
	return false
}

type process struct {
	parent, group, session int
}

// processes returns all processes that we can see, by their ids.
func processes() (map[int]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := make(map[int]process)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		var p process
		var state byte
		fields := stat[bytes.LastIndexByte(stat, ')')+1:] // after the name, which may contain spaces and parentheses
		if _, err := fmt.Sscanf(string(fields), " %c %d %d %d", &state, &p.parent, &p.group, &p.session); err == nil {
			all[pid] = p
		}
	}
	return all, nil
}

// hasJobControl reports whether another process of our session would see that our group was stopped, and could
// continue it. The kernel decides likewise whether a group is orphaned.
func hasJobControl() bool {
	all, err := processes()
	if err != nil {
		return false
	}
	us := all[os.Getpid()]
	for _, p := range all {
		parent, known := all[p.parent]
		if p.group == us.group && known && parent.group != us.group && parent.session == us.session {
			return true
		}
	}
	return false
}

// stopSelf stops this process. It returns when the process is continued.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A signal to the calling thread is delivered before the call returns.
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
}
