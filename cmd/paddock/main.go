package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal has its default action: it kills
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run runs the command of args until it is done or ctx ends, and returns its exit code. It reads no environment but
// env.
func run(ctx context.Context, args []string, env lookup, stdout, stderr io.Writer) int {
	err := execute(ctx, args, env, stdout, stderr)
	if err != nil && !errors.Is(err, errAlreadyReported) {
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

// newLog returns a log of text if w is a terminal, else of JSON.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
