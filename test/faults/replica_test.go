package faults_test

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/paddock-lock/paddock/client"
)

// A replica is a place in the deployment where one process of paddock serve runs
// after the other, always at the same address.
type replica struct {
	number        int // from 1
	program       string
	skew          time.Duration // how far its wall clock is off
	flags         []string      // of paddock serve, besides those that all have
	database      string        // the URL of it
	clientProxy   *proxy        // from its clients to it
	databaseProxy *proxy        // from it to PostgreSQL
	log           *logBuffer    // by all its processes
	process       *child        // nil before the first
}

func (r *replica) String() string { return fmt.Sprint("replica ", r.number) }

// client returns a client that finds the replica at its address.
func (r *replica) client() (*client.Client, error) {
	return client.New(client.Options{BaseURL: "http://" + r.clientProxy.listenAddress()})
}

// start starts a process and returns once it serves.
func (r *replica) start(ctx context.Context) error {
	env := []string{fmt.Sprint(skewVariable, "=", int(r.skew.Seconds())), "PADDOCK_DATABASE_URL=" + r.database}
	args := append([]string{"serve", "--migrate", "--listen", "127.0.0.1:0"}, r.flags...)
	started, err := launch(r.log, env, r.program, args...)
	if err != nil {
		return err
	}
	r.process = started
	at, err := started.awaitOutput(ctx, `"msg":"listening","address":"([^"]+)"`)
	if err != nil {
		return fmt.Errorf("%v: %w", r, err)
	}
	r.clientProxy.setTarget("tcp", at)
	return nil
}

// kill ends the process as a crash does.
func (r *replica) kill() error {
	if r.process == nil {
		return nil
	}
	return r.process.stop(syscall.SIGKILL)
}

// stop tells the process to stop and expects it to end well.
func (r *replica) stop() error {
	err := r.process.stop(syscall.SIGTERM)
	if err != nil {
		return err
	}
	if code := r.process.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%v was told to stop and ended with code %d:\n%s", r, code, r.process.output.bytes())
	}
	return nil
}
