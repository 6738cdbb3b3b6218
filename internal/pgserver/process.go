package pgserver

import (
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A process is a child that cannot outlive us where the system allows it.
type process struct {
	cmd    *exec.Cmd
	log    *logTail
	exited chan struct{} // closed once the child has been reaped
	err    error         // how it ended; read it after exited
}

// start runs cmd, whose output goes to log and to w, which may be nil.
//
// The kernel ties the signal at the parent's death to the thread that started
// the child (go.dev/issue/27505), so one thread is kept for the child's life.
func start(cmd *exec.Cmd, w io.Writer) (*process, error) {
	p := &process{cmd: cmd, log: &logTail{}, exited: make(chan struct{})}
	cmd.Stdout = p.log
	if w != nil {
		cmd.Stdout = io.MultiWriter(p.log, w)
	}
	cmd.Stderr = cmd.Stdout
	// The log's pipe reaches its end when the last of the server's own children
	// has died. Should one hang, its parent's end is told all the same.
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

// A logTail keeps the end of what is written to it.
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
