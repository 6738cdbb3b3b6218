package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// A change is what became of a process: it was stopped, or it has ended.
type change struct {
	pid    int
	status syscall.WaitStatus
}

// launch starts the command in a process group of its own, with our files, not with
// copies of them. It returns the command's process id and the changes of all of our
// children. The channel is closed when there are none any more.
func launch(path string, words, env []string) (int, <-chan change, error) {
	type outcome struct {
		pid int
		err error
	}
	started, changes := make(chan outcome), make(chan change)
	go func() {
		runtime.LockOSThread() // the command dies with the thread that started it
		pid, err := syscall.ForkExec(path, words, &syscall.ProcAttr{
			Env: env, Files: []uintptr{os.Stdin.Fd(), os.Stdout.Fd(), os.Stderr.Fd()}, Sys: attributes(),
		})
		if started <- (outcome{pid, err}); err == nil {
			await(changes)
		}
	}()
	o := <-started
	switch {
	case errors.Is(o.err, syscall.EAGAIN), errors.Is(o.err, syscall.ENOMEM):
		return 0, nil, fmt.Errorf("the command was not started, since there can be no more processes: %w", o.err)
	case o.err != nil:
		return 0, nil, notExecuted(path, o.err)
	}
	return o.pid, changes, nil
}

// await sends what becomes of our children until none is left.
func await(changes chan<- change) {
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
