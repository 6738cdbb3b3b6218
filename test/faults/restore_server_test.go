package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A restorable is a PostgreSQL server whose files can be copied and restored. Replicas connect through one proxy,
// so that another application can write before they connect.
type restorable struct {
	*database
	proxy *proxy
}

// newRestorable starts a server that ends with the test. It does not flush to disk, since the machine does not lose
// power: a flushing restore would take as long as the leases that it loses.
func newRestorable(t *testing.T) *restorable {
	t.Helper()
	db, err := newDatabase(t.Context(), "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, db.host.Close)
	r := &restorable{database: db, proxy: startProxy(t, "replicas to the restored PostgreSQL")}
	r.allowReplicas()
	return r
}

// replicaURL returns the connection string for replicas, through the proxy.
func (r *restorable) replicaURL() string {
	return r.url(url.Values{}, r.proxy.listenAddress(), "paddock")
}

// allowReplicas lets replicas connect; blockReplicas closes each of their new connections.
func (r *restorable) allowReplicas() { r.proxy.setTarget("unix", r.socket()) }
func (r *restorable) blockReplicas() { r.proxy.setTarget("unix", "") }

// A copyFunc copies the files of a running server in place of an earlier copy.
type copyFunc func(*restorable, context.Context) error

// snapshot copies the files like an atomic snapshot of the file system: no process of the server runs meanwhile.
func (r *restorable) snapshot(ctx context.Context) error {
	if err := os.RemoveAll(r.copyDir()); err != nil {
		return err
	}
	if err := r.host.Pause(); err != nil {
		return err
	}
	copied := exec.CommandContext(ctx, "cp", "-a", r.host.Path("data"), r.copyDir())
	output, err := copied.CombinedOutput()
	if err := errors.Join(err, r.host.Resume()); err != nil {
		return fmt.Errorf("%v: %w: %s", copied, err, output)
	}
	return os.Remove(filepath.Join(r.copyDir(), "postmaster.pid"))
}

// baseBackup copies the files with pg_basebackup. The copy starts as after a crash: it has no recovery.signal, so
// the timeline stays the same.
func (r *restorable) baseBackup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	passwords := "*:*:*:paddock:" + r.password + "\n"
	if err := errors.Join(os.RemoveAll(r.copyDir()), r.host.WriteFile("passwords", passwords)); err != nil {
		return err
	}
	return r.host.Run(ctx, "pg_basebackup", "--pgdata="+r.copyDir(), "--wal-method=stream", "--checkpoint=fast",
		"--no-sync",
		fmt.Sprintf("--dbname=host=%s port=5432 user=paddock passfile=%s", r.host.SocketDir(),
			r.host.Path("passwords")))
}

// copyDir is the path of the copy.
func (r *restorable) copyDir() string { return r.host.Path("copy") }

// restoreOptions say how to restore the copy over a running server.
type restoreOptions struct {
	stop        func(*restorable, context.Context) error
	otherWrites bool // another application writes before a replica connects
}

// crash kills all processes of the server.
func (r *restorable) crash(context.Context) error { return r.host.Kill() }

// shutDown stops the server cleanly.
func (r *restorable) shutDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return r.host.Shutdown(ctx)
}

// restore stops the server, replaces its files by the copy and starts it again. It consumes the copy.
func (r *restorable) restore(ctx context.Context, how restoreOptions) error {
	before, err := r.flushedLSN(ctx)
	if err != nil {
		return err
	}
	if how.otherWrites {
		r.blockReplicas()
		defer r.allowReplicas()
	}
	err = errors.Join(how.stop(r, ctx), os.RemoveAll(r.host.Path("data")), os.Rename(r.copyDir(), r.host.Path("data")))
	if err != nil {
		return err
	}
	if err := r.start(ctx); err != nil || !how.otherWrites {
		return err
	}
	return r.writeBeyond(ctx, before)
}

// flushedLSN returns the position up to which the server's log is on disk.
func (r *restorable) flushedLSN(ctx context.Context) (position int64, err error) {
	conn, err := r.connect(ctx, "postgres")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, "select (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint").Scan(&position)
	return position, err
}

// otherWritesMargin is how far beyond the position another application writes: more than replicas can have
// written after the position was read.
const otherWritesMargin = 1 << 20

// writeBeyond writes to another database of the server until the log is beyond the position.
func (r *restorable) writeBeyond(ctx context.Context, position int64) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := r.once(ctx, "postgres", "create table if not exists unrelated (content text)"); err != nil {
		return err
	}
	return retry(ctx, func() error {
		const fill = "insert into unrelated select repeat(md5(n::text), 30) from generate_series(1, 4000) n"
		if err := r.once(ctx, "postgres", fill); err != nil {
			return err
		}
		now, err := r.flushedLSN(ctx)
		if err == nil && now < position+otherWritesMargin {
			err = fmt.Errorf("the log is at %d, and was at %d before the restore", now, position)
		}
		return err
	})
}

// noticeDelay is how long every replica needs to see the newest state of the database: two heartbeats of 500 ms, and
// some margin.
const noticeDelay = 1200 * time.Millisecond
