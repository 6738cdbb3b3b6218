//go:build unix

package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/pgserver"
)

// A Node is a server of a cluster, running or not.
type Node struct {
	Name    string
	cluster *Cluster
	host    *pgserver.Host
	port    int
}

func newNode(ctx context.Context, c *Cluster, name string) (*Node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	host, err := pgserver.NewHost(ctx, "pg_basebackup")
	if err != nil {
		return nil, err
	}
	n := &Node{Name: name, cluster: c, host: host, port: port}
	err = errors.Join(
		host.WriteFile(
			"hba.conf",
			"local all,replication all trust\nhost all,replication all 127.0.0.1/32 scram-sha-256\n",
		),
		host.WriteFile("passwords", "127.0.0.1:*:*:"+superuser+":"+c.password+"\n"),
	)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	return n, nil
}

// freePort returns a free port on loopback, below the range of ports that the system assigns to connections, so that
// it stays free while the server is down.
func freePort() (int, error) {
	const lowest, tries = 20_000, 100
	for range tries {
		port := lowest + rand.IntN(12_000)
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("found no free port in %d tries", tries)
}

func (n *Node) address() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

// URL returns the URL of this node, primary or not.
func (n *Node) URL() string {
	return urlOf(url.UserPassword(superuser, n.cluster.password), n.address(), "")
}

// Port returns the port of the node on 127.0.0.1.
func (n *Node) Port() int { return n.port }

// initialise makes the node the first primary.
func (n *Node) initialise(ctx context.Context) error {
	if err := n.host.Initialise(ctx); err != nil {
		return err
	}
	if err := n.launch(ctx); err != nil {
		return err
	}
	if err := n.Exec(ctx, "alter role "+superuser+" password '"+n.cluster.password+"'"); err != nil {
		return err
	}
	return n.Exec(ctx, "create database "+Database)
}

// launch starts the server and waits until it answers.
func (n *Node) launch(ctx context.Context) error {
	settings := map[string]string{
		"port":                         strconv.Itoa(n.port),
		"listen_addresses":             "127.0.0.1",
		"unix_socket_directories":      `"` + n.host.SocketDir() + `"`,
		"hba_file":                     n.host.Path("hba.conf"),
		"synchronous_standby_names":    n.cluster.opts.Synchronous,
		"max_connections":              "200",
		"wal_keep_size":                "256MB",
		"wal_receiver_status_interval": "1s",
		"wal_retrieve_retry_interval":  "200ms",
	}
	maps.Copy(settings, n.cluster.opts.Settings)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	if err := n.host.Launch(ctx, n.cluster.opts.Log, args...); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return n.await(ctx, "select 1 = 1")
}

// Exec runs statements on the node. Their commits do not wait for a standby.
func (n *Node) Exec(ctx context.Context, sql string) error {
	_, err := n.ask(ctx, sql)
	return err
}

// Ask returns the single value of the statement as text.
func (n *Node) Ask(ctx context.Context, sql string) (string, error) {
	rows, err := n.ask(ctx, sql)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return "", fmt.Errorf("node %s: %s: the result is not a single value", n.Name, sql)
	}
	return string(rows[0][0]), nil
}

// ask runs statements and returns the rows of the last.
func (n *Node) ask(ctx context.Context, sql string) (rows [][][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	conn, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("node %s: %s: %w", n.Name, sql, err)
	}
	return results[len(results)-1].Rows, nil
}

func (n *Node) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig("user=" + superuser + " dbname=postgres sslmode=disable")
	if err != nil {
		return nil, err
	}
	config.Host, config.Port = n.host.SocketDir(), uint16(n.port)
	config.RuntimeParams["synchronous_commit"] = "local"
	config.RuntimeParams["application_name"] = "pgcluster"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return conn, nil
}

// await repeats the query until it returns true.
func (n *Node) await(ctx context.Context, query string) error {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := n.Ask(ctx, query)
		if err == nil && answer == "t" {
			return nil
		}
		if !n.host.Running() {
			return fmt.Errorf("node %s has ended:\n%s", n.Name, n.host.LogTail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %s: still waiting for: %s (%w); its log ends:\n%s",
				n.Name, strings.TrimSpace(query), errors.Join(context.Cause(ctx), err), n.host.LogTail())
		case <-tick.C:
		}
	}
}

// Running reports whether the node's server runs, paused or not.
func (n *Node) Running() bool { return n.host.Running() }

// Kill ends the node at once, like a crash. Data that the operating system has not written to disk survives.
func (n *Node) Kill() error { return n.host.Kill() }

// Restart starts a killed node with its data and in its former role.
func (n *Node) Restart(ctx context.Context) error { return n.launch(ctx) }
