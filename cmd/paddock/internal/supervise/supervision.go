//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SignalName returns the name of a signal, such as SIGTERM.
func SignalName(s syscall.Signal) string { return unix.SignalName(s) }

// supervision is one run of a command.
type supervision struct {
	*Command
	tree     processTree
	terminal *terminal      // nil if there is none
	children chan os.Signal // SIGCHLD: some child has changed
	result   Result

	childless bool // this process has no child
	ended     bool // the command has ended; its descendants may not have
	stage     stage
	until     time.Time // when the next stage is due
	warned    bool      // that some process cannot be signalled
}

// Run starts the command and returns when no process of its tree is left. It does not start it if the lease
// is lost already. An error means that it could not be started. Nothing else of this process may wait for its children meanwhile.
func (c *Command) Run() (Result, error) {
	if err := c.Lease.Err(); err != nil {
		return Result{Lost: err, Idle: true}, nil
	}
	s := &supervision{Command: c, tree: newProcessTree(), children: make(chan os.Signal, 1)}
	signal.Notify(s.children, syscall.SIGCHLD)
	defer signal.Stop(s.children)
	over := make(chan struct{})
	defer close(over)
	c.Signals.listenForJobControl()
	pid, err := launch(c.Path, c.Args, c.Env, over)
	if err != nil {
		return Result{}, err
	}
	s.tree.group = pid
	signal.Ignore(syscall.SIGPIPE) // an unread message must not kill the supervisor of a running command
	s.terminal = openTerminal(pid)
	s.terminal.lendIfWanted()
	s.supervise()
	s.terminal.close(s.result.Status.Signaled() || s.result.Lost != nil)
	return s.result, nil
}

// supervise returns when no process of the tree is left.
func (s *supervision) supervise() {
	checks := time.NewTicker(checkEvery)
	defer checks.Stop()
	lost := s.Lease.Done()
	for !s.over() {
		due := checks.C
		if s.stage == running {
			due = nil
		}
		select {
		case <-lost:
			lost = nil
			s.leaseLost()
		case <-s.children:
			s.handleChanges()
		case sig := <-s.Signals.received:
			s.handleSignal(sig.(syscall.Signal))
		case <-due:
			s.advance()
		}
	}
}

// over reports whether no process that the lock must cover is left.
func (s *supervision) over() bool { return s.ended && s.tree.gone(s.childless) }

// handleChanges handles the changes of all children. It does not wait for one: a child from before the command may
// outlive it.
func (s *supervision) handleChanges() {
	for {
		c, err := nextChange()
		if s.childless = err != nil; s.childless || c.pid == 0 {
			return
		}
		s.handleChange(c)
	}
}

// handleChange handles the stop or the end of a child.
func (s *supervision) handleChange(c change) {
	switch {
	case c.pid != s.tree.group: // a descendant that became our child when its parent ended
	case c.status.Stopped():
		s.commandStopped(c.status.StopSignal())
	default:
		s.ended, s.result.Status = true, c.status
		s.linger()
	}
}

// handleSignal handles a signal that this process received.
func (s *supervision) handleSignal(sig syscall.Signal) {
	s.result.Asked = s.result.Asked || sig == syscall.SIGINT || sig == syscall.SIGQUIT || sig == syscall.SIGTERM
	switch {
	case sig == syscall.SIGCONT && s.terminal != nil:
		s.terminal.lendIfWanted() // the shell may have taken it while only this process was stopped
	case sig == syscall.SIGWINCH && s.terminal.isLent(): // the kernel has sent it to the foreground group
	default:
		s.send(s.tree.signalGroup, sig)
	}
}

// commandStopped is called when the command was stopped. Without a terminal it just stays so. At a terminal a shell
// waits for this process and must see that its job was stopped, so this process stops too; and since the lease is not
// renewed then, all descendants stop first.
func (s *supervision) commandStopped(by syscall.Signal) {
	wantsTerminal := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	switch {
	case s.terminal == nil || s.stage != running:
	case wantsTerminal && s.terminal.lend():
		s.send(s.tree.signalGroup, syscall.SIGCONT)
	default:
		s.suspend()
	}
}

// suspend stops the tree and this process, and returns when a shell continues it. If there is no shell to do so,
// the keyboard cannot stop a job either, and the tree continues at once.
func (s *supervision) suspend() {
	if hasJobControl() {
		s.send(s.tree.signal, syscall.SIGSTOP)
		s.terminal.takeBack()
		s.Signals.suspend()
	}
	s.resume()
}

// resume continues the command, in the foreground if this process is there. A command whose lease was lost meanwhile
// does not run again: it is about to be killed.
func (s *supervision) resume() {
	if s.Lease.Err() == nil {
		s.terminal.lendIfWanted()
		s.send(s.tree.signal, syscall.SIGCONT)
	}
}
