package supervise

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// SignalName returns the name of a signal.
func SignalName(s syscall.Signal) string { return s.String() }

// Signals receives Ctrl-C and the requests of Windows to end this process.
type Signals struct {
	received chan os.Signal
}

// Listen starts to receive the signals, instead of their default action.
func Listen() *Signals {
	s := &Signals{received: make(chan os.Signal, 64)}
	signal.Notify(s.received, os.Interrupt, syscall.SIGTERM)
	return s
}

// FirstBefore waits until done is closed or a signal is received. It reports whether there was a signal.
func (s *Signals) FirstBefore(done <-chan struct{}) (syscall.Signal, bool) {
	select {
	case sig := <-s.received:
		return sig.(syscall.Signal), true
	case <-done:
		return 0, false
	}
}

// Stop restores the default actions of the signals.
func (s *Signals) Stop() { signal.Stop(s.received) }

// Run starts the command and returns when it has ended. It ends the command when the lease is lost. Unlike on Unix it
// does not find processes that the command has started. The console sends Ctrl-C to the command itself; SIGTERM ends
// the command. It does not start it if the lease is lost already. An error means that it could not be started.
func (c *Command) Run() (Result, error) {
	if err := c.Lease.Err(); err != nil {
		return Result{Lost: err, Idle: true}, nil
	}
	cmd := &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := cmd.Start(); err != nil {
		return Result{}, newStartError(c.Path, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the state tells how it ended
	}()
	var result Result
	lost := c.Lease.Done()
	for {
		select {
		case <-lost:
			lost, result.Lost = nil, c.Lease.Err()
			c.kill(cmd)
		case sig := <-c.Signals.received:
			result.Asked = true
			if sig == syscall.SIGTERM {
				c.kill(cmd)
			}
		case <-ended:
			result.Status = cmd.ProcessState.Sys().(syscall.WaitStatus)
			return result, nil
		}
	}
}

// kill ends the command. It fails only if the command has ended.
func (c *Command) kill(cmd *exec.Cmd) {
	if err := cmd.Process.Kill(); err != nil {
		c.Stderr.Printf("cannot end the command; waiting for it: %v", err)
	}
}
