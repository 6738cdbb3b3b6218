package deployment_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

func TestVerifyFindsNoViolationWithTwoReplicas(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	p := built.Start(t, "verify", "--url", s.replicas[0].base, "--url", s.replicas[1].base,
		"--operations=1500", "--clients=16", "--locks=6", "--ttl=300ms", "--seed=7", "--report="+filepath.Join(t.TempDir(),
			"never"))
	if code := p.Exit(t); code != 0 || p.Stderr.String() != "" {
		t.Fatalf("exit code %d:\n%s%s", code, p.Stdout, p.Stderr)
	}
	stdout := p.Stdout.String()
	for _, want := range []string{"16 clients use 6 locks", "for 1500 calls", "the seed 7",
		"All names begin with verify:", "calls in", "acquire", "OK: "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not contain %q:\n%s", want, stdout)
		}
	}
	page, err := s.replicas[0].Locks(t.Context(), paddock.LockQuery{Prefix: "verify:", Limit: paddock.MaxLimit})
	if err != nil || len(page.Items) < 6 {
		t.Errorf("%d locks were used, %v", len(page.Items), err)
	}
	for _, l := range page.Items {
		if l.State != lock.Free {
			t.Errorf("%s was left %s", l.Name, l.State)
		}
	}
}

func TestVerifySurvivesTheDeathOfAReplica(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	p := built.Start(t, "verify", "--url", s.replicas[1].base, "--url", s.replicas[0].base, "--clients=8", "--for=4s",
		"--ttl=300ms")
	p.Stdout.Await(t, "(All names begin with)")
	s.replicas[0].Kill(t)
	if code := p.Exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if said := p.Stdout.String(); !strings.Contains(said, "OK: ") {
		t.Errorf("stdout:\n%s", said)
	}
}
