package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// exitSignalled and a signal's number make the exit code of what the signal ended.
const exitSignalled = 128

// The ears hear the signals that are sent to us.
type ears struct {
	heard chan os.Signal
}

// listen begins to hear the signals that are for the command. One that is ignored
// already, as nohup has it, stays so for us and for the command.
func listen() *ears {
	e := &ears{heard: make(chan os.Signal, 64)}
	signals := []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	}
	signal.Notify(e.heard, slices.DeleteFunc(signals, signal.Ignored)...)
	return e
}

// before returns the first signal to end us that is heard before done is closed, if one is.
func (e *ears) before(done <-chan struct{}) (syscall.Signal, bool) {
	for {
		select {
		case s := <-e.heard:
			if s != syscall.SIGWINCH {
				return s.(syscall.Signal), true
			}
		case <-done:
			return 0, false
		}
	}
}

// more hears what else matters while a command runs: it must be stopped when we are.
func (e *ears) more() { signal.Notify(e.heard, syscall.SIGCONT, syscall.SIGTSTP) }

// suspend stops our process group as the keyboard would have, us included, and
// returns when somebody has us go on.
func (e *ears) suspend() {
	signal.Ignore(syscall.SIGTSTP) // its usual effect cannot be had back from the runtime
	_ = syscall.Kill(0, syscall.SIGTSTP)
	halt()
	signal.Notify(e.heard, syscall.SIGTSTP)
}

// stop has signals have their usual effect again.
func (e *ears) stop() { signal.Stop(e.heard) }

// heed does what a signal asks for.
func (j *job) heed(s syscall.Signal) {
	switch {
	case s == syscall.SIGCONT && j.terminal != nil:
		j.terminal.relend() // the shell may have taken it while we alone were stopped
	case s == syscall.SIGWINCH && j.terminal.lent(): // whose group was told
	default:
		j.tell(j.family.pass, s)
	}
}
