package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
)

// runCommand measures the systems and workloads in the flags.
func runCommand(ctx context.Context, args []string, out streams) error {
	var s settings
	var p part
	set := flag.NewFlagSet("bench run", flag.ContinueOnError)
	s.register(set)
	set.StringVar(&p.systems, "system", "paddock,noop", "systems, separated by commas; all means every installed system")
	set.StringVar(&p.workloads, "workload", "distinct", "workloads, separated by commas")
	clients := set.String("clients", "1,16,64,256", "numbers of clients for the workload distinct")
	set.Float64Var(&p.seconds, "seconds", 3, "seconds for which each run is measured")
	set.Float64Var(&p.warmup, "warm", 1, "seconds of warm-up before each measurement")
	set.IntVar(&p.rounds, "rounds", 3, "number of rounds")
	if err := parse(set, args, out); err != nil {
		return err
	}
	for _, text := range list(*clients) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-clients: %q is not a number of clients", text)
		}
		p.clients = append(p.clients, n)
	}
	return s.measure(ctx, out, plan{parts: []part{p}, kinds: fullWorkloads})
}

// allCommand measures everything in docs/benchmarks.md.
func allCommand(ctx context.Context, args []string, out streams) error {
	var s settings
	set := flag.NewFlagSet("bench all", flag.ContinueOnError)
	s.register(set)
	rounds := set.Int("rounds", 3, "number of rounds")
	if err := parse(set, args, out); err != nil {
		return err
	}
	return s.measure(ctx, out, fullPlan(*rounds))
}

// smokeCommand checks that all systems work under all workloads.
func smokeCommand(ctx context.Context, args []string, out streams) error {
	s := settings{}
	set := flag.NewFlagSet("bench smoke", flag.ContinueOnError)
	s.register(set)
	if err := parse(set, args, out); err != nil {
		return err
	}
	s.tiny = true
	return s.measure(ctx, out, smokePlan())
}

// measure runs all parts of a plan.
func (s *settings) measure(ctx context.Context, out streams, p plan) (err error) {
	for _, part := range p.parts { // report wrong names before anything is started
		if _, _, err := s.choose(part, p.kinds); err != nil {
			return err
		}
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	m := newSession(ctx, s, out)
	for i, part := range p.parts {
		if err := m.measurePart(ctx, i, part, p.kinds); err != nil {
			return err
		}
	}
	return m.file.Failed()
}
