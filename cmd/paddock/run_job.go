package main

import (
	"os/signal"
	"syscall"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
)

// A job is a command that runs while it holds a lock.
type job struct {
	lease     *guard.Lease
	killAfter time.Duration
	heard     *ears
	said      *voice

	family    family
	terminal  *terminal // nil if there is none
	changes   <-chan change
	childless bool // no child of ours is left
	ended     bool // the command, though more of its family may be left
	fate      syscall.WaitStatus
	loss      error // of the lease, while somebody had to be stopped for it

	stage  stage
	until  time.Time // when the next stage is due
	immune bool      // it was said that somebody cannot be killed
}

// do runs the command and returns when nothing of it is left. Its error says that it
// was not started.
func (j *job) do(path string, words, env []string) error {
	if err := j.lease.Err(); err != nil {
		return refused(err)
	}
	j.family = newFamily()
	j.heard.more()
	pid, changes, err := launch(path, words, env)
	if err != nil {
		return err
	}
	j.family.group, j.changes = pid, changes
	signal.Ignore(syscall.SIGPIPE) // a command without its guard is worse than words that nobody reads
	j.terminal = openTerminal(pid)
	j.terminal.relend()
	j.attend()
	j.terminal.close(j.fate.Signaled() || j.loss != nil)
	return nil
}

// attend sees to the command until nothing of it is left.
func (j *job) attend() {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	lost := j.lease.Done()
	for !j.over() {
		due := beats.C
		if j.stage == running {
			due = nil
		}
		select {
		case <-lost:
			lost = nil
			j.lose()
		case c, more := <-j.changes:
			j.notice(c, more)
		case s := <-j.heard.heard:
			j.heed(s.(syscall.Signal))
		case <-due:
			j.advance()
		}
	}
}

// over is whether nothing is left that the lock must guard.
func (j *job) over() bool { return j.ended && j.family.gone(j.childless) }

// notice does what is to be done when a child of ours was stopped or has ended, or
// when no child is left.
func (j *job) notice(c change, more bool) {
	switch {
	case !more:
		j.changes, j.childless = nil, true
	case c.pid != j.family.group: // somebody of the family whose parent had ended
	case c.status.Stopped():
		j.stopped(c.status.StopSignal())
	default:
		j.ended, j.fate = true, c.status
		j.linger()
	}
}

// stopped is called when the command was. Off a terminal it just is. At one, a shell
// waits for us, which must see that its job was stopped, so we are too; and since
// nobody renews the lease then, so is all of the family.
func (j *job) stopped(by syscall.Signal) {
	asks := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	switch {
	case j.terminal == nil || j.stage != running:
	case asks && j.terminal.lend():
		j.tell(j.family.pass, syscall.SIGCONT)
	default:
		j.suspend()
	}
}

// suspend stops the family and us, and returns when somebody has us go on. Where
// nobody could, a keyboard cannot stop anybody either, and all go on at once.
func (j *job) suspend() {
	if stoppable() {
		j.tell(j.family.signal, syscall.SIGSTOP)
		j.terminal.takeBack()
		j.heard.suspend()
	}
	j.resume()
}

// resume has the command go on, in the foreground if that is where we are. One whose
// lease is over does not get to run again: it is about to be stopped for good.
func (j *job) resume() {
	if j.lease.Err() == nil {
		j.terminal.relend()
		j.tell(j.family.signal, syscall.SIGCONT)
	}
}
