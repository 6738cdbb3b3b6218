package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// callsPerRound bounds what is remembered at once: a long verification is a row of
// rounds, each checked before the next begins.
const callsPerRound = 100_000

// collectWithin is how long the service may take to tell what has happened.
const collectWithin = time.Minute

// lullEvery is the time from one lull of the load to the next.
const lullEvery = 2 * time.Second

// A verification is one run of the command.
type verification struct {
	*program
	*verifyCommand
	replicas []workload.Replica
	name     string // begins all names of this run
	perRound int    // how many calls a round has at most; zero: callsPerRound
}

// run plays rounds until there were enough, ctx ends, or one has shown a violation.
func (v *verification) run(ctx context.Context) error {
	loading, cancel := ctx, func() {}
	if v.For > 0 {
		loading, cancel = context.WithTimeout(ctx, v.For)
	}
	defer cancel()
	calls, rounds, most := 0, 0, cmp.Or(v.perRound, callsPerRound)
	for loading.Err() == nil && (v.Operations == 0 || calls < v.Operations) {
		operations := most
		if v.Operations > 0 {
			operations = min(most, v.Operations-calls)
		}
		n, err := v.round(loading, rounds, operations)
		if err != nil {
			return err
		}
		calls, rounds = calls+n, rounds+1
	}
	return v.conclude(calls, rounds)
}

// conclude says what no single round has said.
func (v *verification) conclude(calls, rounds int) error {
	var err error
	switch {
	case calls == 0:
		_, err = fmt.Fprintln(v.stdout, "It was ended before the first call: nothing has been verified.")
	case rounds > 1:
		_, err = fmt.Fprintf(v.stdout, "All in all %d calls in %d rounds, and no violation.\n", calls, rounds)
	}
	return err
}

// round has the clients make that many calls, or as many as come until ctx ends, and
// prints a verdict on them. It returns how many there were.
func (v *verification) round(ctx context.Context, number, operations int) (int, error) {
	prefix, rec := fmt.Sprintf("%s:%d", v.name, number), verify.NewRecorder()
	lulls := time.NewTicker(lullEvery)
	defer lulls.Stop()
	stats, unasked := workload.Run(ctx, rec, workload.Options{
		Services: v.replicas, Prefix: prefix, Clients: v.Clients, Locks: v.Locks, Operations: operations,
		Seed: v.Seed + uint64(number), TTL: v.TTL, NoGrace: v.NoGrace, Subscribers: true, Lulls: lulls.C,
	})
	if _, err := fmt.Fprintf(v.stdout, "%d calls in %s, %.0f a second; %d of them were sent again.\n", stats.Total(), short(stats.Took), stats.Rate(), stats.Retries); err != nil {
		return 0, err
	}
	if err := stats.WriteText(v.stdout); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(v.stdout, "%v.\n", stats.Subscribers); err != nil {
		return 0, err
	}
	h := rec.History()
	events, unsettled := v.collect(context.WithoutCancel(ctx), prefix+":")
	if events == nil && unasked == nil {
		return 0, &failure{exitUnreachable, unsettled}
	}
	h.Events = events
	report := h.Check(verify.CheckOptions{AllowOvertaking: true})
	if err := report.WriteText(v.stdout); err != nil {
		return 0, err
	}
	if !report.OK() {
		return 0, errors.Join(errViolated, v.draw(report))
	}
	return stats.Total(), errors.Join(refused(unasked), unsettled)
}

// collect waits until all locks under the prefix are free, and returns their events.
// Those it returns also if the locks do not become free, with an error.
func (v *verification) collect(ctx context.Context, prefix string) ([]lock.Event, error) {
	settled := v.within(ctx, lock.PlaceRetention+4*v.TTL+lookWithin, func(ctx context.Context) error {
		return workload.WaitUntilFree(ctx, v.replicas[0].Locks, prefix)
	})
	var failed error
	for _, r := range v.replicas {
		var events []lock.Event
		err := v.within(ctx, collectWithin, func(ctx context.Context) (err error) {
			events, err = verify.Collect(ctx, r.Locks, prefix)
			return err
		})
		if err == nil {
			return events, settled
		}
		failed = errors.Join(failed, fmt.Errorf("asking %s what has happened: %w", r.Via, err))
	}
	return nil, failed
}

// within does it, for that time at most.
func (v *verification) within(ctx context.Context, bound time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("it was not done after %v", bound))
	defer cancel()
	return do(ctx)
}

// draw writes the picture of the violation, if that is wanted.
func (v *verification) draw(r verify.Report) (err error) {
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
	_, err = fmt.Fprintf(v.stdout, "The violation is drawn in %s.\n", v.Report)
	return err
}
