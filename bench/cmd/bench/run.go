package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/paddock-lock/paddock/bench/result"
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
	return s.measure(ctx, out, []part{p}, result.File{})
}

// allCommand measures everything in docs/benchmarks.md, or some parts of it.
func allCommand(ctx context.Context, args []string, out streams) error {
	var s settings
	set := flag.NewFlagSet("bench all", flag.ContinueOnError)
	s.register(set)
	rounds := set.Int("rounds", 3, "number of rounds")
	titles := set.String("parts", "", "measure only parts whose titles match this regular expression; the results file keeps the others")
	if err := parse(set, args, out); err != nil {
		return err
	}
	wanted, err := regexp.Compile(*titles)
	if err != nil {
		return fmt.Errorf("-parts: %w", err)
	}
	parts := slices.DeleteFunc(fullPlan(*rounds), func(p part) bool { return !wanted.MatchString(p.title) })
	if len(parts) == 0 {
		return fmt.Errorf("-parts: no title matches %s", wanted)
	}
	var kept result.File
	if *titles != "" && s.results != "" {
		if kept, err = result.Read(s.results); err != nil {
			return err
		}
	}
	return s.measure(ctx, out, parts, kept)
}

// smokeCommand runs every part of the plan for a moment.
func smokeCommand(ctx context.Context, args []string, out streams) error {
	s := settings{}
	set := flag.NewFlagSet("bench smoke", flag.ContinueOnError)
	s.register(set)
	if err := parse(set, args, out); err != nil {
		return err
	}
	s.tiny = true
	return s.measure(ctx, out, smokePlan(), result.File{})
}

// measure measures the parts and puts them into the results. The error includes failed runs.
func (s *settings) measure(ctx context.Context, out streams, parts []part, results result.File) (err error) {
	for _, p := range parts { // report wrong names before anything is started
		if _, _, err := s.choose(p); err != nil {
			return err
		}
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	m := &session{settings: s, streams: out, file: results, machine: result.ThisMachine(ctx)}
	for i, p := range parts {
		if err := m.measurePart(ctx, i, p); err != nil {
			return err
		}
	}
	return m.failed
}
