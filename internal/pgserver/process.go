//go:build unix

package pgserver

import (
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A process is a child process that ends with this one, if the system supports it.
type process struct {
	cmd    *exec.Cmd
	log    *logTail
	exited chan struct{} // closed once the child has been reaped
	err    error         // its result; valid after exited
}

// start runs cmd and copies its output to log and to w, which may be nil.
//
// The kernel sends the signal for the parent's death when the thread that started the child ends
// (go.dev/issue/27505), so start locks a thread until the child has ended.
func start(cmd *exec.Cmd, w io.Writer) (*process, error) {
	p := &process{cmd: cmd, log: &logTail{}, exited: make(chan struct{})}
	cmd.Stdout = p.log
	if w != nil {
		cmd.Stdout = io.MultiWriter(p.log, w)
	}
	cmd.Stderr = cmd.Stdout
	// The log's pipe stays open until the last child of the server has ended. WaitDelay bounds the wait for a hanging
	// child.
	cmd.WaitDelay = 10 * time.Second
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	}()
	return p, <-started
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// A logTail keeps the end of the written data.
type logTail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 4 << 10

func (t *logTail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if len(t.kept) > tailSize {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-tailSize:]...)
	}
	return len(b), nil
}

func (t *logTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
