package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/paddock-lock/paddock/bench/paddock"
	"github.com/paddock-lock/paddock/bench/report"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/soak"
	"github.com/paddock-lock/paddock/bench/workload"
)

// soakCommand runs Paddock for a long time. Events are pruned, so that their number can be stable.
func soakCommand(ctx context.Context, args []string, out streams) (err error) {
	s := settings{}
	set := flag.NewFlagSet("bench soak", flag.ContinueOnError)
	s.register(set)
	long := set.Duration("for", time.Hour, "duration of the soak")
	if err := parse(set, args, out); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	s.paddockFlags += " --event-retention=2m"
	system := &paddock.HTTP{Deployment: s.deployment(1), SystemName: "paddock", SystemTitle: "Paddock, HTTP"}
	defer func() { err = errors.Join(err, system.Stop()) }()
	if err := system.Start(ctx, s.dir); err != nil {
		return err
	}
	f := soak.File{Machine: result.ThisMachine(ctx)}
	f.Intervals, err = soak.Run(ctx, system, soak.Options{
		Workload: workload.Distinct(64), For: *long, Every: time.Minute,
		Done: func(s soak.Interval) { fmt.Fprintf(out.log, "%.1f min  %v\n", s.Minutes, s.Run) },
	})
	if s.results != "" {
		err = errors.Join(err, f.Write(s.results))
	}
	fmt.Fprint(out.out, report.Soak(f))
	return err
}
