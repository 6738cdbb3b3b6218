package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// demoTimeout is how long the demo may take besides the TTL.
const demoTimeout = 30 * time.Second

type demoCommand struct {
	serviceFlags

	TTL time.Duration `name:"ttl" default:"1s" help:"TTL of the lease that ends while its holder is paused."`
}

func (demoCommand) Help() string {
	return `A worker is paused for longer than its lease lasts, another worker takes over, and the first one resumes and
writes: its write is refused because of its fencing token. It needs a service, such as paddock dev.

    paddock demo --url http://127.0.0.1:8080`
}

// Run pauses worker A, a process, for longer than its lease lasts, lets worker B take over, and resumes A, which then
// writes. It succeeds only if that write is refused.
func (c *demoCommand) Run(ctx context.Context, p *program) error {
	if c.TTL < lock.MinTTL {
		return usagef("--ttl is %v; give %v or more", c.TTL, lock.MinTTL)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.TTL+demoTimeout, fmt.Errorf("not done after %v", c.TTL+demoTimeout))
	defer cancel()
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	d := &demo{locks: locks, service: c.serviceFlags, ttl: c.TTL, out: &folder{w: p.stdout}, name: "demo:" + uuid.NewString()[:8]}
	if err := d.run(ctx); err != nil {
		return fmt.Errorf("the demo failed: %w", err)
	}
	return nil
}

// A demo is one run. The lock and the resource have the same name, which no other client knows.
type demo struct {
	locks   paddock.Service
	service serviceFlags
	ttl     time.Duration
	out     io.Writer
	name    string
}

func (d *demo) run(ctx context.Context) error {
	if _, err := d.locks.Lock(ctx, d.name); err != nil {
		return fmt.Errorf("cannot use the service at %s (start one with paddock dev): %w", d.service.URL, err)
	}
	d.printf("Two workers, one lock, one resource (both named %s), at %s\n", d.name, d.service.URL)
	a, err := d.startWorker(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	tokenA, err := d.awaitFirstWrite(ctx, a)
	if err != nil {
		return err
	}
	if err := d.pauseUntilLeaseEnds(ctx, a); err != nil {
		return err
	}
	b, err := d.takeOver(ctx, tokenA)
	if err != nil {
		return err
	}
	if err := d.resume(ctx, a, tokenA, b); err != nil {
		return err
	}
	return d.conclude(ctx, b)
}

// awaitFirstWrite prints the steps of A until it has written, and returns its token.
func (d *demo) awaitFirstWrite(ctx context.Context, a *worker) (lock.Token, error) {
	for {
		s, err := a.next(ctx)
		if err != nil {
			return 0, err
		}
		d.print(s)
		if s.Refused != "" {
			return 0, errors.New("worker A was refused although no other worker had the lock")
		}
		if s.Wrote > 0 {
			return s.Token, nil
		}
	}
}

// pauseUntilLeaseEnds stops A and waits until its lease has ended.
func (d *demo) pauseUntilLeaseEnds(ctx context.Context, a *worker) error {
	if err := a.pause(); err != nil {
		return err
	}
	d.printf("A  is paused in the middle of its work (SIGSTOP to process %d), as by a long garbage collection",
		a.cmd.Process.Pid)
	if err := d.awaitFree(ctx); err != nil {
		return err
	}
	d.printf("   its lease of %v ends meanwhile, and A cannot notice", d.ttl)
	return nil
}

// awaitFree polls the lock until it is free. It waits at least for the rest of each lease.
func (d *demo) awaitFree(ctx context.Context) error {
	for {
		now, err := d.locks.Lock(ctx, d.name)
		if err != nil {
			return err
		}
		if now.State == lock.Free {
			return nil
		}
		next := 10 * time.Millisecond
		for _, lease := range now.Leases {
			next = max(next, lease.Remaining)
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A successor is the lease of B and the version that it wrote.
type successor struct {
	id      lock.LeaseID
	token   lock.Token
	version int64
}

const valueB = `"written by B"`

// takeOver acquires the lock for B, which must give a greater token than A's, and writes.
func (d *demo) takeOver(ctx context.Context, tokenA lock.Token) (successor, error) {
	b := successor{id: lock.LeaseID(uuid.New())}
	grant, err := d.locks.Acquire(ctx, lock.Acquire{Locks: lock.One(d.name), LeaseID: b.id, Holder: "B"})
	if err != nil {
		return b, err
	}
	b.token = grant.Token
	if b.token <= tokenA {
		return b, fmt.Errorf("worker B was granted token %d after A had %d", b.token, tokenA)
	}
	d.printf("B  acquires the lock: token %d", b.token)
	written, err := d.locks.WriteFenced(ctx, lock.FencedWrite{
		Key: d.name, Lock: d.name, Token: b.token, Value: json.RawMessage(valueB),
	})
	if err != nil {
		return b, err
	}
	b.version = written.Version
	d.printf("B  writes with token %d: accepted, version %d", b.token, b.version)
	return b, nil
}

// resume continues A, and returns nil only if its next write is refused because of its token. The answer to a write
// from before the pause may come first.
func (d *demo) resume(ctx context.Context, a *worker, tokenA lock.Token, b successor) error {
	if err := a.resume(); err != nil {
		return err
	}
	d.printf("A  resumes (SIGCONT) where it was, and believes that it holds the lock")
	for {
		s, err := a.next(ctx)
		if err != nil {
			return err
		}
		d.print(s)
		switch {
		case s.Refused == lock.ErrStaleToken && s.Token == tokenA && s.Newest == b.token:
			return nil
		case s.Refused != "":
			return fmt.Errorf("worker A was refused, but not because token %d is older than %d", tokenA, b.token)
		case s.Wrote > b.version:
			return fmt.Errorf("worker A wrote with token %d after token %d had been granted and used", tokenA, b.token)
		}
	}
}

// conclude checks that the resource is as B left it.
func (d *demo) conclude(ctx context.Context, b successor) error {
	now, err := d.locks.ReadFenced(ctx, d.name)
	if err != nil {
		return err
	}
	if now.Token != b.token || now.Version != b.version || string(now.Value) != valueB {
		return fmt.Errorf("the resource is not as B left it: version %d, token %d, %s", now.Version, now.Token, now.Value)
	}
	d.printf("   the resource is as B left it: version %d, %s", now.Version, now.Value)
	if err := d.locks.Release(ctx, lock.Release{Locks: []string{d.name}, LeaseID: b.id}); err != nil {
		return err
	}
	d.printf("B  releases the lock\n")
	d.printf("No lock can stop a process that does not know that it was paused. The fencing token did, " +
		"where the write landed.")
	return nil
}

func (d *demo) print(s step) {
	switch {
	case s.Refused != "":
		d.printf("A  writes with token %d: refused, 412 %s: %d has been granted since", s.Token, s.Refused, s.Newest)
	case s.Wrote > 0:
		d.printf("A  writes with token %d: accepted, version %d", s.Token, s.Wrote)
	default:
		d.printf("A  acquires the lock for %v: token %d", d.ttl, s.Token)
	}
}

func (d *demo) printf(format string, args ...any) {
	fmt.Fprintf(d.out, format+"\n", args...)
}

// A worker is A: a process, so that it can really be paused.
type worker struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	steps  *json.Decoder
	stderr bytes.Buffer // valid after Wait
}

// A step is what A did, a line of JSON of its output: it was granted Token, or wrote version Wrote, or its write was
// refused.
type step struct {
	Token   lock.Token `json:"token"`
	Wrote   int64      `json:"wrote,omitempty"`
	Refused lock.Code  `json:"refused,omitempty"`
	Newest  lock.Token `json:"newest,omitempty"` // if refused: the newest token of the lock
}

// startWorker starts A in its own process group, so that Ctrl-C reaches only this process. If this process dies while
// A is paused, the kernel sends SIGHUP to A.
func (d *demo) startWorker(ctx context.Context) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{}
	ctx, w.cancel = context.WithCancel(ctx)
	w.cmd = exec.CommandContext(ctx, self, append([]string{"demo-worker", "--name", d.name, "--ttl", d.ttl.String()},
		d.service.arguments()...)...)
	w.cmd.Env = append(os.Environ(), d.service.environment()...)
	ownGroup(w.cmd)
	w.cmd.Stderr = &w.stderr
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		w.cancel()
		return nil, err
	}
	w.steps = json.NewDecoder(out)
	return w, nil
}

func (w *worker) next(ctx context.Context) (step, error) {
	var s step
	err := w.steps.Decode(&s)
	if err == nil {
		return s, nil
	}
	if ended := w.cmd.Wait(); ended != nil {
		err = ended
	}
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	return s, fmt.Errorf("worker A has ended: %w: %s", err, bytes.TrimSpace(w.stderr.Bytes()))
}

// close ends the process. Its exit status does not matter.
func (w *worker) close() {
	w.cancel()
	_ = w.cmd.Wait()
}

// A demoWorkerCommand is worker A of the demo, which starts it.
type demoWorkerCommand struct {
	serviceFlags

	Name string        `required:""`
	TTL  time.Duration `name:"ttl" required:""`
}

// Run acquires the lock and writes until a write is refused. Like a careless worker, it never checks that it still
// holds the lock. It prints its steps.
func (c *demoWorkerCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	grant, err := locks.Acquire(ctx, lock.Acquire{
		Locks: lock.One(c.Name), LeaseID: lock.LeaseID(uuid.New()), Holder: "A", TTL: c.TTL,
	})
	if err != nil {
		return explain(err)
	}
	steps := json.NewEncoder(p.stdout)
	if err := steps.Encode(step{Token: grant.Token}); err != nil {
		return err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := c.write(ctx, locks, grant.Token)
		if err == nil {
			err = steps.Encode(s)
		}
		if err != nil || s.Refused != "" {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *demoWorkerCommand) write(ctx context.Context, locks paddock.Service, token lock.Token) (step, error) {
	written, err := locks.WriteFenced(ctx, lock.FencedWrite{
		Key: c.Name, Lock: c.Name, Token: token, Value: json.RawMessage(`"written by A"`),
	})
	if refusal := (*lock.Error)(nil); errors.As(err, &refusal) && errors.Is(err, lock.ErrStaleToken) {
		return step{Token: token, Refused: refusal.Code, Newest: refusal.Newest}, nil
	}
	return step{Token: token, Wrote: written.Version}, err
}
