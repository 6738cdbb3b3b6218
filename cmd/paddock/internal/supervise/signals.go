//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Signals receives the signals that are sent to this process.
type Signals struct {
	received chan os.Signal
}

// Listen starts to receive the signals that are passed on to a command, instead of their default action. A SIGHUP or
// SIGINT that is ignored already, for example by nohup, stays ignored by this process and by the command.
func Listen() *Signals {
	s := &Signals{received: make(chan os.Signal, 64)}
	wanted := []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	}
	signal.Notify(s.received, slices.DeleteFunc(wanted, signal.Ignored)...)
	return s
}

// FirstBefore waits until done is closed or a signal is received that asks this process to end. It reports whether
// there was such a signal. After a command has run, it also stops and continues this process.
func (s *Signals) FirstBefore(done <-chan struct{}) (syscall.Signal, bool) {
	for {
		select {
		case sig := <-s.received:
			switch sig {
			case syscall.SIGWINCH, syscall.SIGCONT:
			case syscall.SIGTSTP:
				if hasJobControl() {
					s.suspend()
				}
			default:
				return sig.(syscall.Signal), true
			}
		case <-done:
			return 0, false
		}
	}
}

// listenForJobControl receives also the signals that stop and continue this process, from the first command on.
func (s *Signals) listenForJobControl() { signal.Notify(s.received, syscall.SIGCONT, syscall.SIGTSTP) }

// suspend stops our process group, this process included, as Ctrl-Z would, and returns when it is continued.
func (s *Signals) suspend() {
	signal.Ignore(syscall.SIGTSTP) // the runtime cannot restore its default action
	_ = syscall.Kill(0, syscall.SIGTSTP)
	stopSelf()
	signal.Notify(s.received, syscall.SIGTSTP)
}

// Stop restores the default actions of the signals.
func (s *Signals) Stop() { signal.Stop(s.received) }
