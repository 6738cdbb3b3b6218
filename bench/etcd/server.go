package etcd

import (
	"context"
	"path/filepath"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/system"
)

// A server is one member of etcd.
type server struct {
	daemon *daemon.Daemon
	addr   string
}

func (s *server) start(ctx context.Context, dir string) error {
	program, err := daemon.Find("etcd", "etcd-server")
	if err != nil {
		return err
	}
	addr, err := daemon.Addr()
	if err != nil {
		return err
	}
	peer, err := daemon.Addr()
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "etcd")
	s.addr = addr
	s.daemon, err = daemon.Start(ctx, daemon.Options{
		Program: program,
		Dir:     data,
		Addr:    addr,
		Args: []string{
			"--data-dir=" + filepath.Join(data, "data"),
			"--listen-client-urls=http://" + addr,
			"--advertise-client-urls=http://" + addr,
			"--listen-peer-urls=http://" + peer,
			"--initial-advertise-peer-urls=http://" + peer,
			"--initial-cluster=default=http://" + peer,
			"--quota-backend-bytes=8589934592",
			"--logger=zap", "--log-level=error",
		},
	})
	return err
}

func (s *server) Stop() error {
	err := s.daemon.Stop()
	s.daemon = nil
	return err
}

func (s *server) Processes() []system.Process {
	if s.daemon == nil {
		return nil
	}
	return []system.Process{{Role: system.Server, PID: s.daemon.PID()}}
}
