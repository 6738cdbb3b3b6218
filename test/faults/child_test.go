package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// patience is how long anything may take that has to happen. Nothing takes that long
// but on a machine that is very busy.
const patience = 30 * time.Second

// A child is a process of ours, to be killed and signalled.
type child struct {
	cmd   *exec.Cmd
	said  *journal
	ended chan struct{} // closed once it has been waited for
}

// launch starts a program, with variables beside those of this process. It says what
// it has to say to the journal too, and is gone when this process is.
func launch(j *journal, env []string, program string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(program, args...), said: &journal{}, ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), env...)
	out := both{c.said, j}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.WaitDelay = patience
	started := make(chan error)
	go c.live(started)
	return c, <-started
}

// await waits until the child has said what matches, and returns the first group.
func (c *child) await(ctx context.Context, pattern string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	wanted := regexp.MustCompile(pattern)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		if found := wanted.FindSubmatch(c.said.bytes()); found != nil {
			return string(found[1]), nil
		}
		select {
		case <-again.C:
		case <-c.ended:
			return "", fmt.Errorf("it ended before it said %s: %v\n%s", pattern, c.cmd.ProcessState, c.said.bytes())
		case <-ctx.Done():
			return "", fmt.Errorf("it did not say %s: %w\n%s", pattern, context.Cause(ctx), c.said.bytes())
		}
	}
}

func (c *child) signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// end sends the signal and waits until the child is gone.
func (c *child) end(s syscall.Signal) error {
	if err := c.signal(s); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("process %d has not ended %v after %v", c.cmd.Process.Pid, patience, s)
	}
}

// A journal keeps what a process, or one after the other, says.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) bytes() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Clone(j.text.Bytes())
}

// both writes to one journal and the other.
type both [2]*journal

func (b both) Write(p []byte) (int, error) {
	for _, j := range b {
		if n, err := j.Write(p); err != nil {
			return n, err
		}
	}
	return len(p), nil
}
