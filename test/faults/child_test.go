package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/verify/workload"
)

// stepTimeout bounds anything that must happen. Only a very busy machine needs as long.
const stepTimeout = 30 * time.Second

// A child is a child process.
type child struct {
	cmd    *exec.Cmd
	output *logBuffer
	ended  chan struct{} // closed once it has been waited for
}

// launch starts a program with additional environment variables. Its output also goes to the log
// buffer, and it is killed when this process ends.
func launch(j *logBuffer, env []string, program string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(program, args...), output: &logBuffer{}, ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), env...)
	out := teeWriter{c.output, j}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.WaitDelay = stepTimeout
	started := make(chan error)
	go c.run(started)
	return c, <-started
}

// awaitOutput waits until the output matches the pattern, and returns the first group.
func (c *child) awaitOutput(ctx context.Context, pattern string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	wanted := regexp.MustCompile(pattern)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		if found := wanted.FindSubmatch(c.output.bytes()); found != nil {
			return string(found[1]), nil
		}
		select {
		case <-again.C:
		case <-c.ended:
			return "", fmt.Errorf("the process ended before it printed %s: %v\n%s", pattern, c.cmd.ProcessState,
				c.output.bytes())
		case <-ctx.Done():
			return "", fmt.Errorf("the process did not print %s: %w\n%s", pattern, context.Cause(ctx),
				c.output.bytes())
		}
	}
}

// serve starts a replica on a free port. It returns once the replica listens, with its address; the replica ends with
// the test, and its last output is logged if that has failed.
func serve(t *testing.T, program string, env []string, args ...string) (c *child, address string) {
	t.Helper()
	c, err := launch(&logBuffer{}, env, program, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopChild(t, c, syscall.SIGKILL) })
	if address, err = c.awaitOutput(t.Context(), `"msg":"listening","address":"([^"]+)"`); err != nil {
		t.Fatal(err)
	}
	return c, address
}

// replicaAt returns the replica at the address for a workload.
func replicaAt(t *testing.T, address string) workload.Replica {
	t.Helper()
	locks, err := client.New(client.Options{BaseURL: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	return workload.Replica{Via: address, Locks: locks, Stream: workload.StreamOf(locks.Stream)}
}

// stopChild stops a child process, and logs its output if the test has failed.
func stopChild(t *testing.T, c *child, how syscall.Signal) {
	t.Helper()
	if err := c.stop(how); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("last output of %v:\n%s", c.cmd.Args, lastLines(c.output.bytes()))
	}
}

func (c *child) signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stop sends the signal and waits until the child has ended.
func (c *child) stop(s syscall.Signal) error {
	if err := c.signal(s); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(stepTimeout):
		return fmt.Errorf("process %d still runs %v after signal %v", c.cmd.Process.Pid, stepTimeout, s)
	}
}

// lastLines returns the newest lines of a replica's log without those about requests.
func lastLines(output []byte) []byte {
	const most = 100
	lines := slices.DeleteFunc(bytes.SplitAfter(output, []byte("\n")), func(line []byte) bool {
		return bytes.Contains(line, []byte(`"msg":"request`)) && !bytes.Contains(line, []byte(`"level":"ERROR"`))
	})
	return bytes.Join(lines[max(0, len(lines)-most):], nil)
}

// A logBuffer keeps the output of one process, or of several in turn.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *logBuffer) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *logBuffer) bytes() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Clone(j.text.Bytes())
}

// A teeWriter writes to both buffers.
type teeWriter [2]*logBuffer

func (b teeWriter) Write(p []byte) (int, error) {
	for _, j := range b {
		if n, err := j.Write(p); err != nil {
			return n, err
		}
	}
	return len(p), nil
}
