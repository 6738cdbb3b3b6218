package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/lease"
)

// kindVariable is the environment variable that makes a process a front of that kind. Its arguments
// are the address to listen on and the target for Open.
const kindVariable = "PADDOCK_BENCH_FRONT"

// An Open function connects to the store behind a front.
type Open func(ctx context.Context, target string) (lease.Store, error)

// start starts this program again as a front.
func start(ctx context.Context, dir, kind, target string) (d *daemon.Daemon, addr string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	if addr, err = daemon.Addr(); err != nil {
		return nil, "", err
	}
	d, err = daemon.Start(ctx, daemon.Options{
		Program: self,
		Args:    []string{addr, target},
		Env:     []string{kindVariable + "=" + kind},
		Dir:     filepath.Join(dir, "front"),
		Addr:    addr,
	})
	return d, addr, err
}

// Run must be called first by a program that starts fronts. In a front process it serves until SIGTERM
// and then returns true; the process should exit. In other processes it returns false.
func Run(kinds map[string]Open) (bool, error) {
	kind := os.Getenv(kindVariable)
	if kind == "" {
		return false, nil
	}
	open, known := kinds[kind]
	if !known || len(os.Args) != 3 {
		return true, fmt.Errorf("unknown front %q, or wrong arguments %q", kind, os.Args[1:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := open(ctx, os.Args[2])
	if err != nil {
		return true, err
	}
	return true, serve(ctx, os.Args[1], handler(store))
}

func serve(ctx context.Context, addr string, h http.Handler) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve returns
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
