package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// defaultVerifyTime is how long a verification takes by default.
const defaultVerifyTime = 30 * time.Second

type verifyCommand struct {
	URL []string `default:"http://127.0.0.1:8080" variable:"PADDOCK_URL" placeholder:"URL" help:"Base URL of the service. Repeat it for several replicas: clients of all of them then contend for the same locks."`
	callerFlags
	quietFlag

	Clients    int           `default:"32" placeholder:"N" help:"Number of concurrent clients."`
	Locks      int           `default:"16" placeholder:"N" help:"Number of locks that they use at a time."`
	Operations int           `placeholder:"N" unset:"no limit" help:"Stop after about N calls."`
	For        time.Duration `unset:"30s, unless --operations is given" help:"Stop after this time."`
	TTL        time.Duration `name:"ttl" default:"1s" help:"TTL of the leases, varied by half of it."`
	NoGrace    bool          `help:"Request no grace, for a service that allows none."`
	Seed       uint64        `placeholder:"N" unset:"random" help:"Seed of what the clients do."`
	Prefix     string        `default:"verify" placeholder:"TEXT" help:"Prefix of the names of all locks and keys."`
	Report     string        `placeholder:"FILE" help:"File for an HTML page that shows a violation, if there is one."`
}

func (verifyCommand) Help() string {
	return `Runs many clients, some of which misbehave, against a running service, and checks their answers against each
other and against the events of the service: leases that exclude each other never overlap, tokens increase, waiters
are served in order, no ended lease is renewed, no confirmed change is lost, and no write with a stale token is
accepted. Streams, pollers and blocking reads must deliver every event once, in order and promptly. The locks have
names of their own, and are free afterwards.

    paddock verify --url http://127.0.0.1:8080 --for 1m
    paddock verify --url http://replica-1:8080 --url http://replica-2:8080 --clients 64 --report violation.html

An API key needs the role lock for names under the prefix. With the role admin the clients also revoke leases, declare
a tree, freeze their own locks, set a rule, and let leases become suspect (on_expiry hold), where the service grants
such leases. If the service has several cells, the clients use names in each of them, which begin with the prefix, a dash
and a number, where the key covers these. Break something meanwhile: kill a replica, restart
PostgreSQL, unplug a cable. The verdict must stay the same. If you interrupt it, it checks the calls until then. Exit
code 1 means that a promise was broken.`
}

func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	replicas, err := c.replicas()
	if err != nil {
		return err
	}
	if err := c.tryReport(); err != nil {
		return err
	}
	c.Seed = cmp.Or(c.Seed, 1+rand.Uint64N(1_000_000))
	folded := *p
	folded.stdout = &folder{w: p.stdout}
	v := &verification{program: &folded, verifyCommand: c, replicas: replicas}
	v.names = []string{v.nameIn(c.Prefix)}
	if err := v.checkAccess(ctx); err != nil {
		return err
	}
	if err := v.checkOneDeployment(ctx); err != nil {
		return err
	}
	if err := v.spread(ctx); err != nil {
		return err
	}
	if err := v.printPlan(); err != nil {
		return err
	}
	return v.run(ctx)
}

// check applies the default time, and returns a usage error for invalid flags.
func (c *verifyCommand) check() error {
	if c.For == 0 && c.Operations == 0 {
		c.For = defaultVerifyTime
	}
	switch {
	case c.Clients < 1:
		return usagef("--clients is %d; give 1 or more", c.Clients)
	case c.Locks < 1:
		return usagef("--locks is %d; give 1 or more", c.Locks)
	case c.Operations < 0:
		return usagef("--operations is %d; give a positive number of calls, or leave it out", c.Operations)
	case c.TTL < lock.MinTTL || c.TTL > workload.MaxTTL:
		return usagef("--ttl is %v; give %v to %v", c.TTL, lock.MinTTL, workload.MaxTTL)
	case lock.CheckName(c.Prefix) != nil || len(c.Prefix) > maxPrefixLength:
		return usagef("--prefix is %q; give 1 to %d characters that are allowed in names", c.Prefix, maxPrefixLength)
	}
	return nil
}

// maxPrefixLength leaves room in names for a part that is unique to the run.
const maxPrefixLength = 100

// replicas returns a client of each URL. It sends nothing.
func (c *verifyCommand) replicas() ([]workload.Replica, error) {
	var all []workload.Replica
	for _, url := range c.URL {
		locks, err := serviceFlags{URL: url, callerFlags: c.callerFlags}.client()
		if err != nil {
			return nil, err
		}
		all = append(all, workload.Replica{Via: url, Locks: locks, Stream: workload.StreamOf(locks.Stream)})
	}
	return all, nil
}

// checkAccess returns an error unless every replica answers and the API key has the role lock. It finds out whether the
// key has the role admin, and whether the service grants leases that do not end by themselves.
func (v *verification) checkAccess(ctx context.Context) error {
	v.isAdmin, v.grantsHold = true, true
	for _, r := range v.replicas {
		if err := v.withTimeout(ctx, callTimeout, func(ctx context.Context) error { return v.probe(ctx, r.Locks, v.names[0]) }); err != nil {
			return fmt.Errorf("cannot verify the service at %s: %w", r.Via, explain(err))
		}
	}
	return nil
}

// probe finds out what a replica allows with a lock.
func (v *verification) probe(ctx context.Context, s paddock.Service, name string) error {
	if _, err := s.Lock(ctx, name); err != nil {
		return err
	}
	_, err := s.Revoke(ctx, lock.Revoke{Name: name, Token: lock.MaxToken, Reason: "paddock verify checks its role"})
	switch {
	case errors.Is(err, lock.ErrRoleMissing):
		v.isAdmin = false
	case !errors.Is(err, lock.ErrTokenMismatch):
		return err
	}
	return v.probeLease(ctx, s, name)
}

// probeLease acquires a lease that does not end by itself, if the key can revoke it, and releases it.
func (v *verification) probeLease(ctx context.Context, s paddock.Service, name string) error {
	a := lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID(uuid.New()), Holder: "paddock verify", TTL: v.TTL,
		Stays: v.isAdmin && v.grantsHold}
	_, err := s.Acquire(ctx, a)
	if e := (*lock.Error)(nil); a.Stays && errors.As(err, &e) && e.Code == lock.ErrInvalid && e.Field == "on_expiry" {
		v.grantsHold = false
		return nil
	}
	if err != nil {
		return err
	}
	if err = s.Release(ctx, lock.Release{Locks: a.Names(), LeaseID: a.LeaseID}); errors.Is(err, lock.ErrLeaseLost) {
		return nil // it has expired before that
	}
	return err
}

// checkOneDeployment returns a usage error unless all replicas know a session that is opened at the first one. Replicas
// of several deployments would seem to break every promise.
func (v *verification) checkOneDeployment(ctx context.Context) error {
	first, others := v.replicas[0], v.replicas[1:]
	if len(others) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(v.replicas))*callTimeout)
	defer cancel()
	session := lock.SessionID(uuid.New())
	if _, err := first.Locks.OpenSession(ctx, lock.OpenSession{ID: session, Holder: "paddock verify", TTL: v.TTL}); err != nil {
		return fmt.Errorf("cannot verify the service at %s: %w", first.Via, explain(err))
	}
	for _, r := range others {
		switch _, err := r.Locks.Session(ctx, session.Ref()); {
		case errors.Is(err, lock.ErrNotFound):
			return usagef("%s does not know a session that was opened at %s a moment ago: they are of different deployments; "+
				"give --url only for replicas that share a database and a schema", r.Via, first.Via)
		case err != nil:
			return fmt.Errorf("cannot verify the service at %s: %w", r.Via, err)
		}
	}
	if err := first.Locks.CloseSession(ctx, lock.CloseSession{ID: session}); err != nil && !errors.Is(err, lock.ErrSessionLost) {
		return fmt.Errorf("cannot verify the service at %s: %w", first.Via, err)
	}
	return nil
}

// printPlan prints what is about to happen, with the seed to repeat it.
func (v *verification) printPlan() error {
	until := fmt.Sprintf("for %v", v.For)
	switch {
	case v.Operations > 0 && v.For > 0:
		until += fmt.Sprintf(" or %d calls", v.Operations)
	case v.Operations > 0:
		until = fmt.Sprintf("for %d calls", v.Operations)
	}
	_, err := fmt.Fprintf(v.stdout, "%d clients use %d locks at a time %s, with TTLs of about %v and the seed %d.\n"+
		"All names begin with %s: and the locks are free afterwards.\n%s%s\n",
		v.Clients, v.Locks, until, v.TTL, v.Seed, strings.Join(v.names, ": or "), v.inCells(), v.notExercised())
	return err
}

// notExercised returns a line about what the service or the API key does not allow, empty if it allows everything.
func (v *verification) notExercised() string {
	switch {
	case !v.isAdmin:
		return "The API key lacks the role admin: freezes, rules, trees, revocations and suspect leases are not exercised.\n"
	case !v.grantsHold:
		return "The service refuses on_expiry hold, since a fail-over may forget the lease: suspect leases are not exercised.\n"
	}
	return ""
}

// errViolated is the failure of a verification that has found a violation.
var errViolated = &failure{exitFailed, errors.New("the service has broken a promise; see above")}

// callsPerRound bounds the memory: a long verification has several rounds, each checked before the next begins.
const callsPerRound = 100_000

// keptByEpoch is how long places without a call may be kept: after a fail-over they are kept for so long again.
const keptByEpoch = lock.MaxWait + lock.PlaceRetention

// collectTimeout is how long the service may take to return the events.
const collectTimeout = time.Minute

// pauseEvery is the time between short pauses of the load.
const pauseEvery = 2 * time.Second

// A verification is one run of the command.
type verification struct {
	*program
	*verifyCommand
	replicas []workload.Replica
	names    []string // prefixes of all names of this run, one in each cell
	cells    []string // those of a service that has several; empty: it has one database
	// onlyGroup: the API key covers names in one of the cells only
	onlyGroup bool
	perRound  int   // maximum number of calls a round; zero means callsPerRound
	stage     stage // after the load of a round

	isAdmin    bool // the API key has the role admin
	grantsHold bool // the service grants leases that do not end by themselves
}

// run runs rounds until the time or the number of calls is reached, ctx ends, or a round finds a violation.
func (v *verification) run(ctx context.Context) error {
	loading, cancel := ctx, func() {}
	if v.For > 0 {
		loading, cancel = context.WithTimeout(ctx, v.For)
	}
	defer cancel()
	calls, rounds, limit := 0, 0, cmp.Or(v.perRound, callsPerRound)
	for loading.Err() == nil && (v.Operations == 0 || calls < v.Operations) {
		operations := limit
		if v.Operations > 0 {
			operations = min(limit, v.Operations-calls)
		}
		n, err := v.round(loading, rounds, operations)
		if err != nil {
			return err
		}
		calls, rounds = calls+n, rounds+1
	}
	return v.conclude(calls, rounds)
}

// conclude prints what holds for all rounds together.
func (v *verification) conclude(calls, rounds int) error {
	var err error
	switch {
	case calls == 0:
		_, err = fmt.Fprintln(v.stdout, "Interrupted before the first call: nothing was verified.")
	case rounds > 1:
		_, err = fmt.Fprintf(v.stdout, "Total: %d calls in %d rounds, no violation.\n", calls, rounds)
	}
	return err
}

// round makes that many calls, or fewer if ctx ends first, prints the verdict on them and returns their number.
func (v *verification) round(ctx context.Context, number, operations int) (int, error) {
	prefixes, rec := make([]string, len(v.names)), verify.NewRecorder()
	for i, name := range v.names {
		prefixes[i] = fmt.Sprintf("%s:%d", name, number)
	}
	pauses := time.NewTicker(pauseEvery)
	defer pauses.Stop()
	calling := v.progress(v.Quiet, v.loadProgress(ctx, rec))
	stats, refused := workload.RunGroups(ctx, rec, workload.Options{
		Services: v.replicas, Clients: v.Clients, Locks: v.Locks, Operations: operations,
		Seed: v.Seed + uint64(number), TTL: v.TTL, NoGrace: v.NoGrace, Subscribers: true, Lulls: pauses.C,
		NoRevoke: !v.isAdmin, Tree: v.isAdmin, Policy: v.isAdmin, Hold: v.isAdmin && v.grantsHold,
	}, prefixes)
	calling()
	if _, err := fmt.Fprintf(v.stdout, "%d calls in %s, %.0f a second; %d of them retried.\n", stats.Total(),
		short(stats.Took), stats.Rate(), stats.Retries); err != nil {
		return 0, err
	}
	if err := v.printWhole(stats.WriteText); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(v.stdout, "%v.\n", stats.Subscribers); err != nil {
		return 0, err
	}
	v.stage.set("waiting until all locks are free")
	checked := v.progress(v.Quiet, v.stage.line)
	defer checked()
	events, notSettled := v.collect(context.WithoutCancel(ctx), rec, prefixes)
	if events == nil && refused == nil {
		return 0, &failure{exitUnreachable, notSettled}
	}
	h := rec.History() // with the revocations of leases that were suspect at the end
	h.Events = events
	if notSettled == nil && v.isAdmin {
		notSettled = v.removePolicy(context.WithoutCancel(ctx), prefixes)
	}
	v.stage.set(fmt.Sprintf("checking %d calls", len(h.Calls)))
	report := h.Check(verify.CheckOptions{AllowOvertaking: true, Cells: len(v.cells) > 0})
	checked()
	if err := v.printWhole(report.WriteText); err != nil {
		return 0, err
	}
	if !report.OK() {
		return 0, errors.Join(errViolated, v.writeReport(report))
	}
	return stats.Total(), errors.Join(explain(refused), notSettled)
}

// printWhole prints what write writes in one write, so that its lines are folded alike.
func (v *verification) printWhole(write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	_, err := v.stdout.Write(b.Bytes())
	return err
}

// loadProgress returns the line of progress of a load that is recorded until ctx ends.
func (v *verification) loadProgress(ctx context.Context, rec *verify.Recorder) func(room int) string {
	start := time.Now()
	return func(int) string {
		calls := rec.Calls()
		left := ""
		if end, bounded := ctx.Deadline(); bounded {
			left = short(max(time.Until(end), 0).Truncate(time.Second)) + " left, "
		}
		return fmt.Sprintf("%s%d calls, %.0f a second", left, calls, float64(calls)/time.Since(start).Seconds())
	}
}

// collect waits until all locks under the prefixes are free, and returns their events. If the locks do not become free
// it returns the events with an error.
func (v *verification) collect(ctx context.Context, rec *verify.Recorder, prefixes []string) ([]lock.Event, error) {
	settled := v.withTimeout(ctx, keptByEpoch+4*v.TTL+callTimeout, func(ctx context.Context) (err error) {
		first := v.replicas[0]
		for _, prefix := range prefixes {
			err = errors.Join(err, workload.WaitUntilFree(ctx, rec.Client(first.Via, first.Locks), prefix+":"))
		}
		return err
	})
	v.stage.set("reading the events")
	var failed error
	for _, r := range v.replicas {
		events := []lock.Event{}
		err := v.withTimeout(ctx, collectTimeout, func(ctx context.Context) error {
			for _, prefix := range prefixes {
				of, err := verify.Collect(ctx, r.Locks, prefix+":")
				if err != nil {
					return err
				}
				events = append(events, of...)
			}
			return nil
		})
		if err == nil {
			return events, settled
		}
		failed = errors.Join(failed, fmt.Errorf("reading the events from %s: %w", r.Via, err))
	}
	return nil, failed
}

// removePolicy removes the trees and the rules of a round, whose locks are free.
func (v *verification) removePolicy(ctx context.Context, prefixes []string) error {
	return v.withTimeout(ctx, callTimeout, func(ctx context.Context) error {
		for _, prefix := range prefixes {
			if err := workload.RemoveTree(ctx, v.replicas[0].Locks, prefix); err != nil {
				return fmt.Errorf("removing the tree of the round: %w", err)
			}
			if err := workload.RemoveRule(ctx, v.replicas[0].Locks, prefix); err != nil {
				return fmt.Errorf("removing the rule of the round: %w", err)
			}
		}
		return nil
	})
}

// withTimeout calls do with a context that ends after that time.
func (v *verification) withTimeout(ctx context.Context, bound time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not done after %v", bound))
	defer cancel()
	return do(ctx)
}

// tryReport returns a usage error if the report could not be written after minutes of work. It changes no file.
func (c *verifyCommand) tryReport() error {
	if c.Report == "" {
		return nil
	}
	_, before := os.Stat(c.Report)
	f, err := os.OpenFile(c.Report, os.O_WRONLY|os.O_CREATE, 0o666)
	if err == nil {
		err = f.Close()
	}
	if err == nil && errors.Is(before, fs.ErrNotExist) {
		err = os.Remove(c.Report)
	}
	if err != nil {
		return usagef("--report: %w; give a file that can be written, in a folder that exists", err)
	}
	return nil
}

// writeReport writes the HTML page of a violation, if it is wanted.
func (v *verification) writeReport(r verify.Report) (err error) {
	if v.Report == "" {
		return nil
	}
	f, err := os.Create(v.Report)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := r.WriteHTML(f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(v.stdout, "The violation is shown in %s.\n", v.Report)
	return err
}
