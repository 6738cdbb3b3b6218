package main

import (
	"errors"
	"syscall"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A stage says how far the ending of a job has come.
type stage int

const (
	running     stage = iota
	lingering         // the command has ended; the others may end by themselves
	terminating       // all were told to end
	killing           // whoever is left is killed, again and again
)

const (
	// beat is how often a job that ends looks what is left.
	beat = 10 * time.Millisecond
	// lingers is how long what a command has left behind may take to end by itself,
	// such as a tee of its output.
	lingers = 500 * time.Millisecond
)

// linger is called when the command has ended.
func (j *job) linger() {
	if j.stage == running {
		j.stage, j.until = lingering, time.Now().Add(lingers)
	}
}

// lose is called when the lease is lost.
func (j *job) lose() {
	j.loss = j.lease.Err()
	if j.stage < killing {
		j.terminate(j.leeway())
	}
}

// leeway returns for how long the family may still take to end when the lease is lost:
// that is over before the lease is. There is none if the service says that the lease
// has ended, for somebody else may have the lock by now; nor if we were stopped, and
// come late.
func (j *job) leeway() time.Duration {
	var e *lock.Error
	left := time.Until(j.lease.Deadline())
	if left > 0 || errors.As(j.loss, &e) && e.Ended != 0 {
		return 0
	}
	return j.killAfter + left
}

// advance goes on to the next stage if it is due.
func (j *job) advance() {
	due := !time.Now().Before(j.until)
	switch {
	case j.stage == lingering && due:
		j.said.say("what the command has left running is stopped: the lock guards that too")
		j.terminate(j.killAfter)
	case j.stage == terminating && (due || j.loss != nil && j.leeway() <= 0):
		j.kill()
	case j.stage == killing:
		j.kill()
	}
}

// terminate tells the family to end, and gives it that long.
func (j *job) terminate(within time.Duration) {
	if within <= 0 {
		j.kill()
		return
	}
	j.stage, j.until = terminating, time.Now().Add(within)
	j.tell(j.family.signal, syscall.SIGTERM)
	j.tell(j.family.signal, syscall.SIGCONT) // or who is stopped would not be told
}

func (j *job) kill() {
	j.stage = killing
	j.tell(j.family.signal, syscall.SIGKILL)
}

// tell sends a signal, and says once if somebody is not to be sent any.
func (j *job) tell(send func(syscall.Signal) error, s syscall.Signal) {
	if err := send(s); err != nil && !j.immune {
		j.immune = true
		j.said.say("not all that the command has started can be sent signals, only waited for: %v", err)
	}
}
