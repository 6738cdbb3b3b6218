//go:build unix

package supervise

import (
	"errors"
	"syscall"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A stage is how far the end of a command has come; see the package's documentation.
type stage int

const (
	running stage = iota
	lingering
	terminating
	killing
)

const (
	// checkEvery is how often a command that is ending is checked for processes that are left.
	checkEvery = 10 * time.Millisecond
	// lingerTime is how long descendants, such as a tee of the output, may outlive the command before they are
	// stopped.
	lingerTime = 500 * time.Millisecond
)

// linger is called when the command has ended.
func (s *supervision) linger() {
	if s.stage == running {
		s.stage, s.until = lingering, time.Now().Add(lingerTime)
	}
}

// leaseLost is called when the lease is lost.
func (s *supervision) leaseLost() {
	s.result.Lost = s.Lease.Err()
	if s.stage < killing {
		s.terminate(s.timeToEnd())
	}
}

// timeToEnd returns for how long the tree may go on after the loss of the lease, so that it is gone when the lease
// ends. If the service reports that the lease has ended, it is what is left of the grace of a revoked lease, else zero,
// since another holder may have the lock by now. It is zero or less if this process noticed the loss too late, because
// it was suspended.
func (s *supervision) timeToEnd() time.Duration {
	var e *lock.Error
	left := time.Until(s.Lease.Deadline())
	switch {
	case s.KillAfter <= 0:
		return 0
	case errors.As(s.result.Lost, &e) && e.Ended != 0:
		return time.Until(s.Lease.GraceEnds().Add(-s.Slack))
	case left > 0:
		return 0
	}
	return s.KillAfter + left
}

// advance enters the next stage if it is due.
func (s *supervision) advance() {
	due := !time.Now().Before(s.until)
	switch {
	case s.stage == lingering && due:
		s.Stderr.Printf("stopping the processes that the command left running: the lock covers them too")
		s.terminate(s.KillAfter)
	case s.stage == terminating && (due || s.result.Lost != nil && s.timeToEnd() <= 0):
		s.kill()
	case s.stage == killing:
		s.kill()
	}
}

// terminate sends SIGTERM to the tree, which is killed after that time.
func (s *supervision) terminate(within time.Duration) {
	if within <= 0 {
		s.kill()
		return
	}
	s.stage, s.until = terminating, time.Now().Add(within)
	s.send(s.tree.signal, syscall.SIGTERM)
	s.send(s.tree.signal, syscall.SIGCONT) // a stopped process handles SIGTERM only when it is continued
}

func (s *supervision) kill() {
	s.stage = killing
	s.send(s.tree.signal, syscall.SIGKILL)
}

// send sends a signal, and warns once if some process cannot be signalled.
func (s *supervision) send(send func(syscall.Signal) error, sig syscall.Signal) {
	if err := send(sig); err != nil && !s.warned {
		s.warned = true
		s.Stderr.Printf("cannot signal every process of the command; waiting for them to end: %v", err)
	}
}
