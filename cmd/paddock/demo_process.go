package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/paddock-lock/paddock/lock"
)

// A worker is A: a process of its own, so that it can be paused for real.
type worker struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	deeds  *json.Decoder
	stderr bytes.Buffer // read it after Wait
}

// A deed is one thing that the worker did, a line of JSON on its output: it was
// granted Token, or its write with Token became version Wrote, or was refused.
type deed struct {
	Token   lock.Token `json:"token"`
	Wrote   int64      `json:"wrote,omitempty"`
	Refused lock.Code  `json:"refused,omitempty"`
	Newest  lock.Token `json:"newest,omitempty"` // on a refusal: what has been granted since
}

// startWorker starts A. In a process group of its own it gets no Ctrl-C meant for
// us, and should we die while it is paused, the kernel hangs up on it.
func (s *story) startWorker(ctx context.Context) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{}
	ctx, w.cancel = context.WithCancel(ctx)
	w.cmd = exec.CommandContext(ctx, self, append([]string{"demo-worker", "--name", s.name, "--ttl", s.ttl.String()}, s.service.again()...)...)
	w.cmd.Env = append(os.Environ(), s.service.secrets()...)
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.cmd.Stderr = &w.stderr
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		w.cancel()
		return nil, err
	}
	w.deeds = json.NewDecoder(out)
	return w, nil
}

// next waits for the worker to do something.
func (w *worker) next(ctx context.Context) (deed, error) {
	var did deed
	err := w.deeds.Decode(&did)
	if err == nil {
		return did, nil
	}
	if ended := w.cmd.Wait(); ended != nil {
		err = ended
	}
	if ctx.Err() != nil {
		return did, context.Cause(ctx)
	}
	return did, fmt.Errorf("worker A has ended: %w: %s", err, bytes.TrimSpace(w.stderr.Bytes()))
}

// pause returns once the process does nothing any more.
func (w *worker) pause() error {
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(w.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case status.Stopped():
			return nil
		default:
			return errors.New("worker A ended when it was to be paused")
		}
	}
}

// resume lets the process go on.
func (w *worker) resume() error { return w.cmd.Process.Signal(syscall.SIGCONT) }

// close makes sure that the process is gone. How it ended matters no more.
func (w *worker) close() {
	w.cancel()
	_ = w.cmd.Wait()
}
