//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// launch starts the command in a process group of its own, and returns its process id. The command has the standard
// files of this process, not copies of them. over must be closed when the command has ended.
func launch(path string, args, env []string, over <-chan struct{}) (int, error) {
	type outcome struct {
		pid int
		err error
	}
	started := make(chan outcome)
	go func() {
		runtime.LockOSThread() // the command dies with the thread that started it
		pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
			Env: env, Files: []uintptr{os.Stdin.Fd(), os.Stdout.Fd(), os.Stderr.Fd()}, Sys: attributes(),
		})
		started <- outcome{pid, err}
		<-over
	}()
	o := <-started
	switch {
	case errors.Is(o.err, syscall.EAGAIN), errors.Is(o.err, syscall.ENOMEM):
		return 0, fmt.Errorf("cannot start the command because no more processes can be created: %w", o.err)
	case o.err != nil:
		return 0, newStartError(path, o.err)
	}
	return o.pid, nil
}

// A change is the stop or the end of a child process.
type change struct {
	pid    int
	status syscall.WaitStatus
}

// nextChange returns a change of a child, with the pid zero if there is none yet. It fails if no child is left.
func nextChange() (c change, err error) {
	for {
		c.pid, err = syscall.Wait4(-1, &c.status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			return c, err // ECHILD
		}
	}
}
