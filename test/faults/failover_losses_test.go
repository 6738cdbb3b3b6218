package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgcluster"
)

// laggingFailOver is a fail-over to a standby that has not received the newest.
func (s *clusterHarness) laggingFailOver() loss {
	behind := s.cluster.Standbys()
	return loss{
		before: func(ctx context.Context) error {
			return errors.Join(behind[0].Cut(ctx), behind[1].Cut(ctx))
		},
		trigger: func(ctx context.Context) error {
			return errors.Join(s.cluster.Primary().Kill(), behind[0].Promote(ctx))
		},
	}
}

// withLateReplica is the same, but the replica that has granted what is lost, and alone may
// know how long leases there were, comes late to the new primary.
func (s *clusterHarness) withLateReplica(l loss) loss {
	return loss{
		before: l.before,
		trigger: func(ctx context.Context) error {
			knows, other := s.replicas[0], s.replicas[1]
			err := errors.Join(knows.signal(syscall.SIGSTOP), l.trigger(ctx))
			s.eventually("the other replica begins an epoch", func() bool { return bytes.Contains(other.output.bytes(), []byte("a new epoch has begun")) })
			return errors.Join(err, knows.signal(syscall.SIGCONT))
		},
	}
}

// restoreBackup is a restore of a backup.
func (s *clusterHarness) restoreBackup(way pgcluster.Way) loss {
	return loss{
		before:  s.cluster.Backup,
		trigger: func(ctx context.Context) error { return s.cluster.Restore(ctx, way) },
	}
}

func (o lossResult) check(t *testing.T) {
	t.Helper()
	t.Logf("refused %d times; the first grant was %v after the strike", o.refusals, o.paused)
	for _, v := range o.violations {
		t.Error(v)
	}
	if o.refusals == 0 {
		t.Error("nobody was refused, though the database may have lost leases")
	}
}

// laggingStandbyPromoted promotes a standby that has not received the newest.
func laggingStandbyPromoted(t *testing.T, program string) {
	s := newClusterHarness(t, program, pgcluster.Options{})
	s.serve(2, s.cluster.URL(), "--migrate")
	s.runLoss(s.withLateReplica(s.laggingFailOver())).check(t)
}

// backupRestored puts a backup in the database's place, in three ways.
func backupRestored(t *testing.T, program string) {
	s := newClusterHarness(t, program, pgcluster.Options{})
	s.serve(2, s.cluster.URL(), "--migrate")
	for _, l := range []loss{s.restoreBackup(pgcluster.AsCrashed), s.restoreBackup(pgcluster.FromArchive), s.unnoticedRestore()} {
		s.runLoss(l).check(t)
	}
}

// What the store does about a database that is another, and what it would be without.
const (
	epochCheck   = "func (e epoch) check(k known) error {\n"
	noEpochCheck = epochCheck + "\tif e.longest >= 0 {\n\t\treturn nil\n\t}\n"
)

// withoutEpochCheck shows that what promotedLagging checks can go wrong.
func withoutEpochCheck(t *testing.T) {
	s := newClusterHarness(t, program(t, "-overlay", overlay(t, "../../store/epoch.go", epochCheck, noEpochCheck)), pgcluster.Options{})
	s.serve(2, s.cluster.URL(), "--migrate")
	o := s.runLoss(s.laggingFailOver())
	t.Logf("without the guard: %q", o.violations)
	for _, want := range []string{"before the one who had it gave it up", "had been granted"} {
		if !slices.ContainsFunc(o.violations, func(v string) bool { return strings.Contains(v, want) }) {
			t.Errorf("nothing was found %s", want)
		}
	}
}

// overlay returns what go build -overlay takes to have a file be as if a text in it
// were another.
func overlay(t *testing.T, file, old, other string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), old); n != 1 {
		t.Fatalf("%s is not what it was: what is to be changed in it is there %d times", file, n)
	}
	dir := t.TempDir()
	changed := written(t, dir, "changed.go.txt", []byte(strings.Replace(string(text), old, other, 1)))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	return written(t, dir, "overlay.json", replace)
}

// unnoticedRestore is a restore that nobody can notice, so an operator says so.
func (s *clusterHarness) unnoticedRestore() loss {
	return loss{
		before: s.cluster.Backup,
		trigger: func(ctx context.Context) error {
			s.stopServing()
			if err := s.cluster.Restore(ctx, pgcluster.AsCrashed); err != nil {
				return err
			}
			if err := s.runPaddock(ctx, "epoch", "new", "--reason", "a backup was restored"); err != nil {
				return err
			}
			s.serve(2, s.cluster.URL())
			return nil
		},
	}
}

// runPaddock runs a command of the program on the database to its end.
func (s *clusterHarness) runPaddock(ctx context.Context, args ...string) error {
	return s.runPaddockAs(ctx, s.cluster.URL(), args...)
}

// runPaddockAs does so by another URL.
func (s *clusterHarness) runPaddockAs(ctx context.Context, databaseURL string, args ...string) error {
	c, err := launch(&logBuffer{}, []string{"PADDOCK_DATABASE_URL=" + databaseURL}, s.program, args...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	select {
	case <-c.ended:
	case <-ctx.Done():
		return fmt.Errorf("paddock %v has not ended: %w", args, context.Cause(ctx))
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("paddock %v ended with %d:\n%s", args, code, c.output.bytes())
	}
	return nil
}
