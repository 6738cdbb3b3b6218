//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

func TestRunGoesOnWithTheLeaseOfAKilledRun(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	file := filepath.Join(t.TempDir(), "lease")
	args := []string{"--ttl=1m", "--lease-id-file=" + file, nightly, "--", "sh", "-c"}
	first := d.startRun(append(args, `echo "token $PADDOCK_FENCING_TOKEN"; exec sleep 60`)...)
	token := first.Stdout.Await(t, `token (\d+)`)
	twice := d.startRun(append(args, "true")...)
	twice.expectExit(t, exitUsage, "Another process uses the lease_id file")
	if err := first.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.Exit(t)
	other := d.startRun("--lease-id-file="+file, "other", "--", "true")
	other.expectExit(t, exitUsage, "--lease-id-file: ", file+" keeps a lease of "+nightly+", not of other; give each work a file of its own")
	next := d.startRun(append(args, `echo "token $PADDOCK_FENCING_TOKEN"`)...)
	next.expectExit(t, 0)
	if next.Stdout.String() != "token "+token+"\n" {
		t.Errorf("the next run has %q, the killed one had the token %s", next.Stdout, token)
	}
	d.expectFree()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("after the release the file is still there: %v", err)
	}
	d.awaitEvent(nightly, lock.Released, "me")
}

func TestRunNamesAnUnusableLeaseIDFile(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--lease-id-file=/proc/nothing/lease", nightly, "--", "true")
	p.expectExit(t, exitUsage, "--lease-id-file:", "give the name of a file that")
}
