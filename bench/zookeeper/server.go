package zookeeper

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// The server's location in Debian's packages. The archive refers to its other dependencies.
const (
	archive = "/usr/share/java/zookeeper.jar"
	logging = "/usr/share/java/slf4j-simple.jar"
)

// settings are ZooKeeper's defaults except for the address, the limit of connections, and the admin
// server, which is off.
const settings = `dataDir=%s
clientPort=%s
clientPortAddress=%s
tickTime=2000
maxClientCnxns=0
admin.enableServer=false
`

// Recipe is ZooKeeper with the lock recipe.
type Recipe struct {
	daemon *daemon.Daemon
	addr   string
}

// Name implements system.System.
func (*Recipe) Name() string { return "zookeeper" }

// Title implements system.System.
func (*Recipe) Title() string { return "ZooKeeper lock recipe" }

// Start implements system.System.
func (r *Recipe) Start(ctx context.Context, dir string) (err error) {
	java, err := daemon.Find("java", "default-jre-headless")
	if err != nil {
		return err
	}
	if _, err := os.Stat(archive); err != nil {
		return daemon.Missing("ZooKeeper", "libzookeeper-java")
	}
	if r.addr, err = daemon.Addr(); err != nil {
		return err
	}
	home := filepath.Join(dir, "zookeeper")
	config, err := configure(home, r.addr)
	if err != nil {
		return err
	}
	r.daemon, err = daemon.Start(ctx, daemon.Options{
		Program: java,
		Dir:     home,
		Addr:    r.addr,
		Args: []string{
			"-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
			"-cp", strings.Join([]string{archive, logging}, ":"),
			"org.apache.zookeeper.server.ZooKeeperServerMain", config,
		},
	})
	if err != nil {
		return err
	}
	return waitUntilServing(ctx, r.addr)
}

// waitUntilServing waits until the server serves. It listens earlier, but drops sessions created then.
func waitUntilServing(ctx context.Context, addr string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if strings.Contains(serverStatus(addr), "Mode:") {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("zookeeper is not serving: %w", context.Cause(ctx))
		}
	}
}

// configure writes the server's configuration.
func configure(home, addr string) (path string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(home, "zoo.cfg")
	return path, os.WriteFile(path, fmt.Appendf(nil, settings, filepath.Join(home, "data"), port, host), 0o600)
}

// Stop implements system.System.
func (r *Recipe) Stop() error {
	err := r.daemon.Stop()
	r.daemon = nil
	return err
}

// Processes implements system.System.
func (r *Recipe) Processes() []system.Process {
	if r.daemon == nil {
		return nil
	}
	return []system.Process{{Role: system.Server, PID: r.daemon.PID()}}
}

// Client implements system.System. Each client has its own session and connection.
func (r *Recipe) Client(ctx context.Context) (system.Client, error) {
	conn, err := connect(ctx, r.addr)
	if err != nil {
		return nil, err
	}
	return client{conn}, nil
}

// serverStatus returns the server's answer to the command srvr, empty if there is none. go-zookeeper's
// own function cannot parse the answer of Debian's version.
func serverStatus(addr string) string {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close() //nolint:errcheck // everything has been read
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return ""
	}
	status, _ := io.ReadAll(conn) // an incomplete answer does not count
	return string(status)
}

// discardLogger drops the client's log; its errors contain what matters.
type discardLogger struct{}

func (discardLogger) Printf(string, ...any) {}

// connect opens a connection and waits for its session.
func connect(ctx context.Context, addr string) (*zk.Conn, error) {
	conn, events, err := zk.Connect([]string{addr}, lease.TTL, zk.WithLogger(discardLogger{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, fmt.Errorf("zookeeper has not created a session: %w", context.Cause(ctx))
		}
	}
}
