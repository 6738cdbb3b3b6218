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

// kindVariable tells a process that it is a front, and of what kind. Its arguments are where it
// listens and what is behind it.
const kindVariable = "PADDOCK_BENCH_FRONT"

// An Open connects to the store that is behind a front.
type Open func(ctx context.Context, target string) (lease.Store, error)

// start runs this program once more, as a front.
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

// Run is called first by a program that has fronts. In a process that is one it serves until it
// is told to stop, and returns true: then there is nothing else to do.
func Run(kinds map[string]Open) (bool, error) {
	kind := os.Getenv(kindVariable)
	if kind == "" {
		return false, nil
	}
	open, known := kinds[kind]
	if !known || len(os.Args) != 3 {
		return true, fmt.Errorf("no front %q, with the arguments %q", kind, os.Args[1:])
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
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve tells
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
