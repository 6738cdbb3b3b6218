package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Rejoin makes a node a standby of the primary from scratch, whatever it was before,
// and returns when it streams. Its server is ended first.
func (c *Cluster) Rejoin(ctx context.Context, n *Node) error {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	if n == c.primary {
		return fmt.Errorf("node %s is the primary: it can follow nobody", n.Name)
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

// conninfo is how the node, under its name, reaches another one for replication.
func (n *Node) conninfo(to *Node) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s passfile=%s application_name=%s sslmode=disable",
		to.port, superuser, n.host.Path("passwords"), n.Name)
}

// Follow has a standby receive from another node, which must be on the standby's
// history, and returns when it does.
func (n *Node) Follow(ctx context.Context, to *Node) error {
	if err := n.receiveFrom(ctx, n.conninfo(to)); err != nil {
		return err
	}
	return n.awaitStreaming(ctx)
}

// Cut has a standby receive nothing any more, and returns when that is so. What it
// has received it applies.
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

// awaitStreaming waits until the primary counts the node among its standbys.
func (n *Node) awaitStreaming(ctx context.Context) error {
	return n.cluster.primary.await(ctx,
		"select exists (select from pg_stat_replication where application_name = '"+n.Name+"' and state = 'streaming')")
}
