package main

import (
	"fmt"
	"io"

	"github.com/paddock-lock/paddock/client/guard"
)

// A voice says lines on standard error. Who speaks does not wait until they are
// written: a pipe that nobody reads must not keep work alive whose lease is lost.
type voice struct {
	lines chan string
	quit  chan struct{}
	done  chan struct{}
}

// unsaid is how many lines a voice remembers while nobody reads them. It forgets
// those that come after.
const unsaid = 64

func newVoice(w io.Writer) *voice {
	v := &voice{lines: make(chan string, unsaid), quit: make(chan struct{}), done: make(chan struct{})}
	go v.speak(w)
	return v
}

func (v *voice) speak(w io.Writer) {
	defer close(v.done)
	for {
		select {
		case line := <-v.lines:
			fmt.Fprintln(w, line)
		case <-v.quit:
			for len(v.lines) > 0 {
				fmt.Fprintln(w, <-v.lines)
			}
			return
		}
	}
}

// say says a line, soon.
func (v *voice) say(format string, args ...any) {
	select {
	case v.lines <- legible(fmt.Sprintf("paddock: "+format, args...)):
	default:
	}
}

// finish returns when everything has been said. What is said after it is lost.
func (v *voice) finish() {
	close(v.quit)
	<-v.done
}

// states returns what a lease of the lock is to tell of its states.
func (v *voice) states(name string) func(guard.State, error) {
	return func(s guard.State, err error) {
		switch s {
		case guard.AtRisk:
			v.say("the lease of %s is at risk, and the command will be stopped if it cannot be renewed in time: %v", name, err)
		case guard.Held:
			v.say("the lease of %s is held again", name)
		}
	}
}
