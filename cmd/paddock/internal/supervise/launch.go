//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// A change is the stop or the end of a child process.
type change struct {
	pid    int
	status syscall.WaitStatus
}

// launch starts the command in a process group of its own. The command has the standard files of this process, not
// copies of them. launch returns the command's process id and a channel of the changes of all children, which is
// closed when none is left.
func launch(path string, args, env []string) (int, <-chan change, error) {
	type outcome struct {
		pid int
		err error
	}
	started, changes := make(chan outcome), make(chan change)
	go func() {
		runtime.LockOSThread() // the command dies with the thread that started it
		pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
			Env: env, Files: []uintptr{os.Stdin.Fd(), os.Stdout.Fd(), os.Stderr.Fd()}, Sys: attributes(),
		})
		if started <- (outcome{pid, err}); err == nil {
			waitForChildren(changes)
		}
	}()
	o := <-started
	switch {
	case errors.Is(o.err, syscall.EAGAIN), errors.Is(o.err, syscall.ENOMEM):
		return 0, nil, fmt.Errorf("cannot start the command because no more processes can be created: %w", o.err)
	case o.err != nil:
		return 0, nil, newStartError(path, o.err)
	}
	return o.pid, changes, nil
}

// waitForChildren sends the changes of all children until none is left, and then closes the channel.
func waitForChildren(changes chan<- change) {
	defer close(changes)
	for {
		var c change
		var err error
		c.pid, err = syscall.Wait4(-1, &c.status, syscall.WUNTRACED, nil)
		switch {
		case err == nil:
			changes <- c
		case !errors.Is(err, syscall.EINTR):
			return // ECHILD
		}
	}
}
