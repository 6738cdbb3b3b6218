package redis

import (
	"context"
	"net"
	"path/filepath"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/system"
)

// A server is a Redis server with an append-only file.
type server struct {
	daemon *daemon.Daemon
	addr   string
}

// start starts the server with the value of appendfsync.
func (s *server) start(ctx context.Context, dir, fsync string) error {
	program, err := daemon.Find("redis-server", "redis-server")
	if err != nil {
		return err
	}
	if s.addr, err = daemon.Addr(); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "redis")
	s.daemon, err = daemon.Start(ctx, daemon.Options{
		Program: program,
		Dir:     data,
		Addr:    s.addr,
		Args: []string{
			"--bind", host, "--port", port, "--dir", data, "--save", "",
			"--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0",
		},
	})
	return err
}

// Stop implements system.System.
func (s *server) Stop() error {
	err := s.daemon.Stop()
	s.daemon = nil
	return err
}

// Processes implements system.System.
func (s *server) Processes() []system.Process {
	if s.daemon == nil {
		return nil
	}
	return []system.Process{{Role: system.Database, PID: s.daemon.PID()}}
}
