package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/paddock-lock/paddock/bench/noop"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

const usage = `usage: bench COMMAND [FLAGS]

  run     measure selected systems under selected workloads
  all     measure everything in docs/benchmarks.md; takes about 14 minutes
  smoke   run every part of that for a moment, to see that it works
  soak    run Paddock for an hour, to check that nothing grows
  report  regenerate the figures and plots of docs/benchmarks.md from results

bench COMMAND -h lists the flags.
`

// errUsage means that the command line is wrong and that this was reported already.
var errUsage = errors.New("wrong usage")

// streams are the writers of a command: out for its result, log for its progress.
type streams struct{ out, log io.Writer }

// run runs the command in the arguments and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s := streams{stdout, stderr}
	commands := map[string]func(context.Context, []string, streams) error{
		"run": runCommand, "all": allCommand, "smoke": smokeCommand, "soak": soakCommand, "report": reportCommand,
		noop.Command: noopCommand,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	err := commands[args[0]](ctx, args[1:], s)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return exitUsage
	}
	fmt.Fprintln(stderr, "bench:", err)
	return exitFailed
}

// noopCommand serves package noop; the bench starts itself with it.
func noopCommand(ctx context.Context, args []string, _ streams) error {
	if len(args) != 1 {
		return errUsage
	}
	return noop.Serve(ctx, args[0])
}

// parse reads a command's flags.
func parse(set *flag.FlagSet, args []string, s streams) error {
	set.SetOutput(s.log)
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil || set.NArg() > 0 {
		return errUsage
	}
	return nil
}
