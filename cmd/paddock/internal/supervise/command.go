package supervise

import (
	"fmt"
	"syscall"
	"time"
)

// A Lease is what supervision needs to know of a lease that is renewed elsewhere, such as a guard.Lease.
type Lease interface {
	Done() <-chan struct{} // closed when the lease is lost
	Err() error            // nil until then
	Deadline() time.Time   // when it is lost unless it is renewed; an earlier loss means that it has ended
	GraceEnds() time.Time  // if the service reports that it was revoked: when no other client is kept out any more
}

// A Command is a program that must not outlive a lease.
type Command struct {
	Path string   // the executable, as LookPath found it
	Args []string // its name and its arguments
	Env  []string

	Lease     Lease
	KillAfter time.Duration // the time from SIGTERM to SIGKILL, if a descendant has to be stopped
	Slack     time.Duration // how long before the end of a revoked lease's grace the descendants are killed
	Signals   *Signals
	Stderr    *AsyncStderr // for messages about the command; its own go to the standard error of this process
}

// A Result is how a command ended.
type Result struct {
	Status syscall.WaitStatus
	Idle   bool  // the command was not started, because the lease was lost before
	Lost   error // of the lease, if that is why processes were stopped
	Asked  bool  // to end, by SIGINT, SIGQUIT or SIGTERM
}

// ExitCode returns the command's exit code, or 128+n if signal n ended it.
func (r Result) ExitCode() int {
	if r.Status.Signaled() {
		return ExitSignalled + int(r.Status.Signal())
	}
	return r.Status.ExitStatus()
}

// String returns how the command ended: the exit code, or the name of the signal that ended the command.
func (r Result) String() string {
	switch {
	case r.Idle:
		return "before its start"
	case r.Status.Signaled():
		return SignalName(r.Status.Signal())
	}
	return fmt.Sprintf("exit code %d", r.Status.ExitStatus())
}
