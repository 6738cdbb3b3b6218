package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

// nobody is an address at which connections are refused.
const nobody = "http://127.0.0.1:1"

func TestCommandsUseTheAddressThatAnswers(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.env["PADDOCK_URL"] = nobody + "," + d.base
	d.expectExit(exitOK, "acquire", "jobs:nightly", "--retry=0s")
	if stdout, _ := d.expectExit(exitOK, "list", "--url", d.base+", "+nobody); !strings.Contains(stdout, "jobs:nightly") {
		t.Errorf("paddock list printed %q", stdout)
	}
	p := d.startRun("jobs:other", "--", "sh", "-c", "echo $PADDOCK_URL")
	p.expectExit(t, exitOK)
	if got, want := p.Stdout.String(), d.env["PADDOCK_URL"]+"\n"; got != want {
		t.Errorf("the command has the addresses %q, want %q", got, want)
	}
}

func TestAnErrorOfACommandNamesEachAddress(t *testing.T) {
	t.Parallel()
	silent := silentServer(t)
	d := &harness{T: t, env: map[string]string{"PADDOCK_URL": silent + "," + nobody}}
	d.expectFailure(exitUnreachable, []string{silent + ": It gave no answer within", nobody + ": ", "connection refused"}, "list", "--retry=0s")
}

func TestAHealthcheckIsOfOneReplica(t *testing.T) {
	t.Parallel()
	d := &harness{T: t, env: map[string]string{"PADDOCK_URL": nobody + "," + nobody}}
	d.expectFailure(exitFailed, []string{"one replica", "give --url"}, "healthcheck")
}

// A crowd is clients that use two replicas: guards that hold leases, and others that wait for a lock in order.
type crowd struct {
	*testing.T
	locks   paddock.Service // at the replica that lives
	leases  []*guard.Lease
	waiters sync.WaitGroup

	mu      sync.Mutex
	granted []string // the holders that got the lock, in order
}

const (
	crowdTTL   = 9 * time.Second
	crowdQueue = "jobs:queue"
)

// newCrowd starts the clients, which prefer the replica at the first of the addresses.
func newCrowd(t *testing.T, dying, living string) *crowd {
	t.Helper()
	c := &crowd{T: t, locks: replica.Connect(t, client.Options{BaseURL: living})}
	var all sync.WaitGroup
	for i := range 4 {
		locks := replica.Connect(t, client.Options{BaseURL: dying + "," + living})
		for n := range 50 {
			all.Go(func() {
				l, err := guard.Acquire(t.Context(), locks, fmt.Sprintf("jobs:%d:%d", i, n), guard.Options{TTL: crowdTTL})
				if err != nil {
					t.Error(err)
					return
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				c.leases = append(c.leases, l)
			})
		}
	}
	all.Wait()
	return c
}

// enqueue makes waiters wait for a lock, one after the other.
func (c *crowd) enqueue(locks paddock.Service, n int) {
	c.Helper()
	for i := range n {
		holder := fmt.Sprint("waiter ", i)
		c.waiters.Go(func() {
			l, err := guard.Acquire(c.Context(), locks, crowdQueue, guard.Options{Holder: holder, TTL: crowdTTL, Wait: time.Minute})
			if err != nil {
				c.Error(err)
				return
			}
			c.mu.Lock()
			c.granted = append(c.granted, holder)
			c.mu.Unlock()
			if err := l.Release(c.Context()); err != nil {
				c.Error(err)
			}
		})
		await.Until(c.T, "the waiter is in the queue", func() bool {
			q, err := c.locks.Queue(c.Context(), crowdQueue)
			return err == nil && len(q.Waiters) == i+1
		})
	}
}

// requestsTo is a transport that counts the requests to a host.
type requestsTo struct {
	http.Transport
	host  string
	count atomic.Int32
}

func (r *requestsTo) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == r.host {
		r.count.Add(1)
	}
	return r.Transport.RoundTrip(req)
}

// TestClientsOutliveAReplica lets a replica die, while its clients hold leases and wait. No lease is lost, and the
// waiters are served in order.
func TestClientsOutliveAReplica(t *testing.T) {
	t.Parallel()
	for what, die := range map[string]func(*process, *tcpproxy.Proxy) error{
		"killed":  func(p *process, _ *tcpproxy.Proxy) error { return p.Cmd.Process.Kill() },
		"frozen":  func(p *process, _ *tcpproxy.Proxy) error { return p.Cmd.Process.Signal(syscall.SIGSTOP) },
		"cut off": func(_ *process, line *tcpproxy.Proxy) error { line.Stall(); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			database := pgtest.URL(t)
			p, dying := startServe(t, database)
			_, living := startServe(t, database)
			line := tcpproxy.New(t, strings.TrimPrefix(dying, "http://"))
			addresses := "http://" + line.Address + "," + living
			c := newCrowd(t, "http://"+line.Address, living)
			first, err := guard.Acquire(t.Context(), c.locks, crowdQueue, guard.Options{TTL: crowdTTL})
			if err != nil {
				t.Fatal(err)
			}
			moved := &requestsTo{host: strings.TrimPrefix(living, "http://")}
			c.enqueue(replica.Connect(t, client.Options{BaseURL: addresses, HTTP: &http.Client{Transport: moved}}), 3)
			died := time.Now()
			if err := die(p, line); err != nil {
				t.Fatal(err)
			}
			for _, l := range c.leases {
				await.Until(t, "the lease is renewed at the other replica", func() bool {
					return l.Err() != nil || l.Deadline().Sub(died) > crowdTTL
				})
				if err := l.Err(); err != nil {
					t.Errorf("a lease is lost: %v", err)
				}
			}
			await.Until(t, "the waiters wait at the other replica", func() bool {
				q, err := c.locks.Queue(t.Context(), crowdQueue)
				return err == nil && len(q.Waiters) == 3 && moved.count.Load() >= 3 &&
					!slices.ContainsFunc(q.Waiters, func(w lock.WaiterInfo) bool { return !w.Attached })
			})
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
			c.waiters.Wait()
			if want := []string{"waiter 0", "waiter 1", "waiter 2"}; !slices.Equal(c.granted, want) {
				t.Errorf("the waiters were granted the lock in the order %q, want %q", c.granted, want)
			}
			var all sync.WaitGroup
			for _, l := range c.leases {
				all.Go(func() {
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			page, err := c.locks.Events(t.Context(), paddock.EventQuery{Names: []string{crowdQueue}, Kinds: []lock.Kind{lock.Dequeued, lock.Withdrawn, lock.Expired}})
			if err != nil || len(page.Items) > 0 {
				t.Errorf("a place or a grant was lost: %+v, %v", page.Items, errors.Join(err, context.Cause(t.Context())))
			}
		})
	}
}
