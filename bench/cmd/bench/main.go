// Command bench measures Paddock and its peers, side by side on one machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/paddock-lock/paddock/bench/rivals"
)

func main() {
	if is, err := rivals.Front(); is {
		os.Exit(code(err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// code returns the exit code of a process that was started as part of a system.
func code(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	return exitFailed
}
