//go:build unix

package pgcluster

import (
	"context"
	"errors"
	"os"
)

// A RestoreMode says how a backup is restored.
type RestoreMode int

const (
	// AsCrashed starts the copy as after a crash at the time of the backup. The system identifier and the timeline
	// stay the same.
	AsCrashed RestoreMode = iota
	// FromArchive recovers the copy as from an archive, which ends on a new timeline.
	FromArchive
)

// Backup copies the primary, and replaces an earlier backup.
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

// Restore stops all nodes, replaces the data of the primary with the backup, and starts the primary. Later changes
// are lost. The other nodes stay down until they Rejoin. The primary must be the one of the backup.
func (c *Cluster) Restore(ctx context.Context, mode RestoreMode) error {
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
	if mode == FromArchive {
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
