package pgcluster

import (
	"context"
	"errors"
	"os"
)

// A RestoreMode says how a backup is brought back.
type RestoreMode int

const (
	// AsCrashed starts the copy as if its server had crashed when it was taken. The
	// system identifier and the timeline are those of before.
	AsCrashed RestoreMode = iota
	// FromArchive has the copy recover as from an archive, which ends on a new timeline.
	FromArchive
)

// Backup keeps a copy of the primary, in place of an earlier one.
func (c *Cluster) Backup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	n := c.primary
	if err := os.RemoveAll(n.host.Path("backup")); err != nil {
		return err
	}
	return n.host.Run(ctx, "pg_basebackup", "--pgdata="+n.host.Path("backup"), "--dbname="+n.conninfo(n),
		"--wal-method=stream", "--checkpoint=fast", "--no-sync")
}

// Restore ends all nodes and starts what Backup kept in the place of the primary
// that it was taken from, which is the primary then. What was done since is gone.
// The others stay down until they Rejoin.
func (c *Cluster) Restore(ctx context.Context, way RestoreMode) error {
	n := c.primary
	for _, each := range c.nodes {
		if err := each.Kill(); err != nil {
			return err
		}
	}
	err := errors.Join(os.RemoveAll(n.host.Path("data")), os.Rename(n.host.Path("backup"), n.host.Path("data")))
	if err != nil {
		return err
	}
	if way == FromArchive {
		err = errors.Join(n.host.WriteFile("data/recovery.signal", ""),
			n.host.WriteFile("data/postgresql.auto.conf", "restore_command = 'false'\n"))
	}
	if err != nil {
		return err
	}
	if err := n.launch(ctx); err != nil {
		return err
	}
	return n.await(ctx, "select not pg_is_in_recovery()")
}
