//go:build unix

package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Rejoin stops the node, copies the primary to it, starts it as a standby, and returns when it streams.
func (c *Cluster) Rejoin(ctx context.Context, n *Node) error {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	if n == c.primary {
		return fmt.Errorf("node %s is the primary and cannot rejoin", n.Name)
	}
	if err := errors.Join(n.host.Kill(), os.RemoveAll(n.host.Path("data"))); err != nil {
		return err
	}
	err := n.host.Run(ctx, "pg_basebackup", "--pgdata="+n.host.Path("data"), "--dbname="+n.conninfo(c.primary),
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	if err != nil {
		return err
	}
	if err := n.launch(ctx); err != nil {
		return err
	}
	return n.awaitStreaming(ctx)
}

// conninfo returns the connection string for replication from another node.
func (n *Node) conninfo(to *Node) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s passfile=%s application_name=%s sslmode=disable",
		to.port, superuser, n.host.Path("passwords"), n.Name)
}

// Follow makes a standby receive from another node with the same history, and returns when it streams.
func (n *Node) Follow(ctx context.Context, to *Node) error {
	if err := n.receiveFrom(ctx, n.conninfo(to)); err != nil {
		return err
	}
	return n.awaitStreaming(ctx)
}

// Cut stops replication to a standby, and returns when it has stopped. The standby still applies what it has
// received.
func (n *Node) Cut(ctx context.Context) error {
	if err := n.receiveFrom(ctx, ""); err != nil {
		return err
	}
	return n.await(ctx, "select count(*) = 0 from pg_stat_wal_receiver")
}

func (n *Node) receiveFrom(ctx context.Context, conninfo string) error {
	err := n.Exec(ctx, "alter system set primary_conninfo = '"+strings.ReplaceAll(conninfo, "'", "''")+"'")
	if err != nil {
		return err
	}
	return n.Exec(ctx, "select pg_reload_conf()")
}

// awaitStreaming waits until the primary streams to the node.
func (n *Node) awaitStreaming(ctx context.Context) error {
	return n.cluster.primary.await(
		ctx,
		"select exists (select from pg_stat_replication where application_name = '"+n.Name+"' and state = 'streaming')",
	)
}
