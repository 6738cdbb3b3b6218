package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes returns how a command is started: in a process group of its own, and to
// be killed by the kernel if we are. What it has started the kernel does not kill.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// The kin are whatever descends from us, and did not before the command was started.
type kin struct {
	adopting bool
	before   map[int]bool // children of ours that somebody left us by exec
}

// newFamily returns the family of a command that is about to be started. From now on,
// whoever of it loses a parent becomes our child, in whatever session.
func newFamily() family {
	all, err := relatives()
	f := family{kin: kin{before: map[int]bool{}}}
	if _, seen := all[os.Getpid()]; err != nil || !seen {
		return f // without /proc, those who left the group could not be found
	}
	f.adopting = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
	for pid, r := range all {
		if r.parent == os.Getpid() {
			f.before[pid] = true
		}
	}
	return f
}

func (k kin) adopts() bool { return k.adopting }

// alone is whether nobody of the family is left, though children from before keep us
// from being childless.
func (k kin) alone() bool { return len(k.before) > 0 && len(k.strays(0)) == 0 }

// strays returns the family but for those in the process group.
func (k kin) strays(group int) []int {
	all, err := relatives()
	if err != nil || !k.adopting {
		return nil
	}
	var strays []int
	for pid, r := range all {
		if r.group != group && k.descends(pid, all) {
			strays = append(strays, pid)
		}
	}
	return strays
}

// descends is whether the process descends from us, by way of nobody from before.
func (k kin) descends(pid int, all map[int]relative) bool {
	for range len(all) { // which ends even if what was read at different times goes in circles
		r, known := all[pid]
		switch {
		case !known || k.before[pid]:
			return false
		case r.parent == os.Getpid():
			return true
		}
		pid = r.parent
	}
	return false
}

// A relative is where a process belongs.
type relative struct {
	parent, group, session int
}

// relatives returns all processes that we can see.
func relatives() (map[int]relative, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := make(map[int]relative)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		var r relative
		var state byte
		fields := stat[bytes.LastIndexByte(stat, ')')+1:] // behind a name that may look like fields
		if _, err := fmt.Sscanf(string(fields), " %c %d %d %d", &state, &r.parent, &r.group, &r.session); err == nil {
			all[pid] = r
		}
	}
	return all, nil
}

// stoppable is whether our process group has somebody in its session who would see
// that it was stopped, and could have it go on.
func stoppable() bool {
	all, err := relatives()
	if err != nil {
		return false
	}
	us := all[os.Getpid()]
	for _, r := range all {
		parent, known := all[r.parent]
		if r.group == us.group && known && parent.group != us.group && parent.session == us.session {
			return true
		}
	}
	return false
}

// halt stops us. It returns when we go on.
func halt() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Sent to the thread that sends it, the signal is there before the call returns.
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
}
