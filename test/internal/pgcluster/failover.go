//go:build unix

package pgcluster

import (
	"context"
	"errors"
	"fmt"
)

// Promote promotes the standby that has received the most; the other one follows it. The old primary may be
// unreachable. If it is alive, it confirms no commit from now on, provided that its commits wait for a standby.
// Rejoin it afterwards. Promote fails without changing roles unless both standbys answer.
func (c *Cluster) Promote(ctx context.Context) (*Node, error) {
	standbys := c.Standbys()
	for _, n := range standbys {
		if err := n.Cut(ctx); err != nil {
			return nil, fmt.Errorf("not promoting, because a confirmed commit may be unreachable: %w", err)
		}
	}
	best, other := standbys[0], standbys[1]
	further, err := other.isAheadOf(ctx, best)
	if err != nil {
		return nil, err
	}
	if further {
		best, other = other, best
	}
	if err := best.Promote(ctx); err != nil {
		return nil, err
	}
	return best, other.Follow(ctx, best)
}

// isAheadOf reports whether n has received more than another standby.
func (n *Node) isAheadOf(ctx context.Context, another *Node) (bool, error) {
	const received = "select coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')"
	theirs, err := another.Ask(ctx, received)
	if err != nil {
		return false, err
	}
	more, err := n.Ask(ctx, "select ("+received+") > '"+theirs+"'::pg_lsn")
	return more == "t", err
}

// Promote makes a standby the primary as it is, whatever the others have received, and returns when it accepts
// writes. No node follows it yet.
func (n *Node) Promote(ctx context.Context) error {
	promoted, err := n.Ask(ctx, "select pg_promote(true, 60)")
	if err != nil {
		return err
	}
	if promoted != "t" {
		return fmt.Errorf("node %s was not promoted within a minute; its log ends:\n%s", n.Name, n.host.LogTail())
	}
	n.cluster.primary = n
	return nil
}

// Switchover changes roles as planned: the primary is shut down after it has sent everything, a standby is promoted,
// and the old primary becomes a standby.
func (c *Cluster) Switchover(ctx context.Context) error {
	old := c.primary
	if err := old.shutdown(ctx); err != nil {
		return err
	}
	if _, err := c.Promote(ctx); err != nil {
		return err
	}
	return old.comeBack(ctx)
}

// comeBack starts a node that was shut down as a standby of the primary.
func (n *Node) comeBack(ctx context.Context) error {
	err := errors.Join(
		n.host.WriteFile("data/standby.signal", ""),
		n.host.WriteFile("data/postgresql.auto.conf", "primary_conninfo = '"+n.conninfo(n.cluster.primary)+"'\n"))
	if err != nil {
		return err
	}
	if err := n.launch(ctx); err != nil {
		return err
	}
	return n.awaitStreaming(ctx)
}

func (n *Node) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	return n.host.Shutdown(ctx)
}
