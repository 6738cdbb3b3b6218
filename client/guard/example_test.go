package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// A job that several workers start and one runs. The write carries the token.
func ExampleDo() {
	locks := exampleService() // client.New(client.Options{BaseURL: "http://127.0.0.1:8080"})
	ctx := context.Background()

	book := func(ctx context.Context) error {
		token, _ := lock.TokenFrom(ctx)
		_, err := locks.WriteFenced(ctx, lock.FencedWrite{
			Key: "accounts:42", Lock: "jobs:nightly", Token: token, Value: json.RawMessage(`{"balance":100}`),
		})
		return err
	}
	err := guard.Do(ctx, locks, "jobs:nightly", guard.Options{Holder: "worker-1"}, func(ctx context.Context, _ *guard.Lease) error {
		// Another worker is refused meanwhile.
		err := guard.Do(ctx, locks, "jobs:nightly", guard.Options{Holder: "worker-2"}, nil)
		if refusal := (*lock.Error)(nil); errors.As(err, &refusal) {
			fmt.Println(refusal.Code, "by", refusal.Holder)
		}
		return book(ctx)
	})
	fmt.Println(err)

	written, err := locks.ReadFenced(ctx, "accounts:42")
	fmt.Println(string(written.Value), err)
	// Output:
	// lock_held by worker-1
	// <nil>
	// {"balance":100} <nil>
}

// A job that is on every machine and needs to be done once per day.
func ExampleOnce() {
	locks := exampleService()
	ctx := context.Background()

	daily := lock.Closing{Period: lock.Day, Zone: "Europe/Berlin", For: time.Minute}
	for _, machine := range []string{"machine-1", "machine-2"} {
		turn, err := guard.Once(ctx, locks, "jobs:nightly", daily, guard.Options{Holder: machine}, func(context.Context, *guard.Lease) error {
			fmt.Println(machine, "does the work")
			return nil
		})
		if err != nil {
			fmt.Println(err)
		} else if !turn.Ran {
			fmt.Println(machine, "finds that", turn.DoneBy, "has done it")
		}
	}
	// Output:
	// machine-1 does the work
	// machine-2 finds that machine-1 has done it
}

// A lease that is not tied to a function, and that an operator revokes.
func ExampleAcquire() {
	locks := exampleService()
	ctx := context.Background()

	lease, err := guard.Acquire(ctx, locks, "reports", guard.Options{
		TTL:  300 * time.Millisecond, // short for the example; ten seconds is short in practice
		Wait: time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locks.Revoke(ctx, lock.Revoke{Name: "reports", Token: lease.Token(), Reason: "maintenance"})
	fmt.Println(err)
	<-lease.Done()
	fmt.Println(errors.Is(lease.Err(), lock.ErrLeaseLost))
	fmt.Println(errors.Is(lease.Release(ctx), lock.ErrLeaseLost))
	// Output:
	// <nil>
	// true
	// true
}

// An observer sees the leader, its values, and the end of its term.
func ExampleElection() {
	locks := exampleService()
	ctx := context.Background()

	election := guard.NewElection(locks, "leader", guard.Options{Holder: "node-1"})
	term, err := election.Campaign(ctx, "10.0.0.1:7000")
	if err != nil {
		fmt.Println(err)
		return
	}
	for leader, err := range election.Observe(ctx) {
		switch {
		case err != nil:
			fmt.Println("the service is unreachable:", err)
		case leader == nil:
			fmt.Println("there is no leader")
			return
		case leader.Value == "10.0.0.1:7000":
			fmt.Println(leader.Holder, "leads at", leader.Value)
			fmt.Println(term.Proclaim(ctx, "10.0.0.1:7001"))
		default:
			fmt.Println(leader.Holder, "leads at", leader.Value, leader.Token == term.Token())
			fmt.Println(term.Resign(ctx))
		}
	}
	// Output:
	// node-1 leads at 10.0.0.1:7000
	// <nil>
	// node-1 leads at 10.0.0.1:7001 true
	// <nil>
	// there is no leader
}

// At most three uploads at a time.
func ExampleSemaphore() {
	locks := exampleService()
	ctx := context.Background()

	uploads := guard.NewSemaphore(locks, "uploads", 3, guard.Options{Holder: "uploader"})
	for range 4 {
		permit, err := uploads.Acquire(ctx)
		if err != nil {
			fmt.Println(errors.Is(err, lock.ErrHeld))
			return
		}
		defer func() { _ = permit.Release(ctx) }() // otherwise it ends with its TTL
		fmt.Println("slot", permit.Slot())
	}
	// Output:
	// slot 1
	// slot 2
	// slot 3
	// true
}

// Readers share the lock, a writer has it alone.
func ExampleRWLock() {
	locks := exampleService()
	ctx := context.Background()

	catalogue := guard.NewRWLock(locks, "catalogue", guard.Options{})
	err := catalogue.DoRead(ctx, func(ctx context.Context, first *guard.Lease) error {
		return catalogue.DoRead(ctx, func(ctx context.Context, second *guard.Lease) error {
			fmt.Println("two readers have the same token:", first.Token() == second.Token())
			_, err := catalogue.Write(ctx)
			fmt.Println("a writer is refused:", errors.Is(err, lock.ErrHeld))
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// two readers have the same token: true
	// a writer is refused: true
	// <nil>
}

// exampleService returns a service in memory instead of a client, so that the examples run without a server.
func exampleService() paddock.Service { return memlock.New().Replica(1) }
