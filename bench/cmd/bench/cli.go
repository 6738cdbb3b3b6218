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

  run     measure some systems under some workloads
  all     measure what docs/benchmarks.md tells of: ten minutes or so
  smoke   have every system do every workload for a moment, to see that all is well
  soak    have Paddock work for an hour, to see whether anything grows
  report  write the figures and the plots of docs/benchmarks.md anew, from results

bench COMMAND -h tells the flags.
`

// errUsage says that the command line is wrong, and that it was told so.
var errUsage = errors.New("wrong usage")

// A streams is where a command writes: what was asked for, and what happens meanwhile.
type streams struct{ out, log io.Writer }

// run does what the arguments say and returns the exit code.
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

// noopCommand is what the bench calls itself with.
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
