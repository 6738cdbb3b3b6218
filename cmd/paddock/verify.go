package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify/workload"
)

// usualVerification is how long a verification takes that is not told otherwise.
const usualVerification = 30 * time.Second

type verifyCommand struct {
	URL []string `default:"http://127.0.0.1:8080" variable:"PADDOCK_URL" placeholder:"URL" help:"Base URL of the service. Give those of several replicas, or of a balancer, to have them contend."`
	callerFlags

	Clients    int           `default:"32" placeholder:"N" help:"How many clients there are at once."`
	Locks      int           `default:"16" placeholder:"N" help:"How many locks they want at a time."`
	Operations int           `placeholder:"N" help:"Stop after about so many calls."`
	For        time.Duration `placeholder:"DURATION" help:"Stop after this time; 30s if neither this nor --operations is given."`
	TTL        time.Duration `name:"ttl" default:"1s" help:"TTL of the leases, give or take a half."`
	NoGrace    bool          `help:"Ask for no grace, of a service that allows none."`
	Seed       uint64        `placeholder:"N" help:"What the intentions of the clients are drawn from. If not given, chance says."`
	Prefix     string        `default:"verify" placeholder:"TEXT" help:"What the names of all locks and keys begin with."`
	Report     string        `placeholder:"FILE" help:"Where to draw a violation, should there be one, as a page of HTML."`
}

// Help shows how to use it.
func (verifyCommand) Help() string {
	return `Has many clients use a running service, as it should be used and as it should not, and checks what they were told against what the service says has happened: ` +
		`nobody has a lock together with another who must not, tokens grow, who waits is served in turn, no lease comes back to life, nothing that was answered is lost, ` +
		`and no write lands under a stale token. Streams, pollers and blocking reads go along, and must be told of every event, once, in order and promptly. The locks have names of their own, and are free afterwards.

    paddock verify --url http://127.0.0.1:8080 --for 1m
    paddock verify --url http://replica-1:8080 --url http://replica-2:8080 --clients 64 --report violation.html

An API key must have the role admin, for names under the prefix. Break something meanwhile: kill a replica, restart PostgreSQL, pull a cable. The verdict must stay the same. Interrupted, it checks what there was until then. ` +
		`Exit code 1 says that a promise was broken.`
}

// Run verifies the service and prints the verdict.
func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	replicas, err := c.replicas()
	if err != nil {
		return err
	}
	c.Seed = cmp.Or(c.Seed, 1+rand.Uint64N(1_000_000))
	v := &verification{program: p, verifyCommand: c, replicas: replicas, name: c.Prefix + ":" + uuid.NewString()[:8]}
	if err := v.reach(ctx); err != nil {
		return err
	}
	if err := v.announce(); err != nil {
		return err
	}
	return v.run(ctx)
}

// check returns a usage error if the flags make no sense.
func (c *verifyCommand) check() error {
	if c.For == 0 && c.Operations == 0 {
		c.For = usualVerification
	}
	switch {
	case c.Clients < 1:
		return usagef("--clients is %d; give 1 or more", c.Clients)
	case c.Locks < 1:
		return usagef("--locks is %d; give 1 or more", c.Locks)
	case c.Operations < 0:
		return usagef("--operations is %d; give how many calls, or leave it out", c.Operations)
	case c.TTL < lock.MinTTL || c.TTL > workload.MaxTTL:
		return usagef("--ttl is %v; give %v to %v", c.TTL, lock.MinTTL, workload.MaxTTL)
	case lock.CheckName(c.Prefix) != nil || len(c.Prefix) > longestVerified:
		return usagef("--prefix is %q; give 1 to %d of the characters that names may have", c.Prefix, longestVerified)
	}
	return checkNotNegative("--for", c.For)
}

// longestVerified is how long a prefix may be, so that there is room for a name of
// this run.
const longestVerified = 100

// replicas returns the ways to the service. It sends nothing.
func (c *verifyCommand) replicas() ([]workload.Replica, error) {
	var all []workload.Replica
	for _, url := range c.URL {
		locks, err := serviceFlags{URL: url, callerFlags: c.callerFlags}.open()
		if err != nil {
			return nil, err
		}
		all = append(all, workload.Replica{Via: url, Locks: locks, Stream: workload.StreamOf(locks.Stream)})
	}
	if len(all) == 0 {
		return nil, usagef("--url is empty; give the base URL of the service")
	}
	return all, nil
}

// reach returns an error unless all ways lead to a service that answers, and lets us do
// what only some may.
func (v *verification) reach(ctx context.Context) error {
	for _, r := range v.replicas {
		ctx, cancel := context.WithTimeout(ctx, lookWithin)
		_, err := r.Locks.Lock(ctx, v.name)
		if err == nil {
			_, err = r.Locks.Revoke(ctx, lock.Revoke{Name: v.name, Token: lock.MaxToken, Reason: "to see whether verify may"})
		}
		cancel()
		if !errors.Is(err, lock.ErrTokenMismatch) {
			return fmt.Errorf("looking for a service to verify at %s: %w", r.Via, err)
		}
	}
	return nil
}

// announce says what is about to happen, and how to have it happen again.
func (v *verification) announce() error {
	until := fmt.Sprintf("for %v", v.For)
	switch {
	case v.Operations > 0 && v.For > 0:
		until += fmt.Sprintf(" or %d calls", v.Operations)
	case v.Operations > 0:
		until = fmt.Sprintf("for %d calls", v.Operations)
	}
	_, err := fmt.Fprintf(v.stdout, "%d clients use %d locks at a time %s, with TTLs of about %v and the seed %d.\n"+
		"All names begin with %s: and the locks are free afterwards; in time the service forgets them.\n\n",
		v.Clients, v.Locks, until, v.TTL, v.Seed, v.name)
	return err
}

// errViolated is what the verdict leads to if there is a violation.
var errViolated = &failure{exitFailed, errors.New("the service has broken a promise, see above")}
