package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal has its usual effect: it kills
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// A lookup finds a variable of the environment, as os.LookupEnv does.
type lookup func(name string) (value string, ok bool)

// run does what args ask for until that is done or ctx ends, and returns the
// exit code. It reads no environment but env.
func run(ctx context.Context, args []string, env lookup, stdout, stderr io.Writer) int {
	err := execute(ctx, args, env, stdout, stderr)
	if err != nil && !errors.Is(err, errOfCommand) {
		fmt.Fprintf(stderr, "paddock: %v\n", err)
	}
	return exitCode(err)
}

func execute(ctx context.Context, args []string, env lookup, stdout, stderr io.Writer) error {
	var line commandLine
	command, err := parse(&line, args, env, stdout)
	if err != nil || command == nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(&program{env: env, stdout: stdout, stderr: stderr, log: newLog(stderr, line.LogLevel)})
}
