package faults_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgcluster"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify/workload"
)

// quorum has each commit wait for one of the two standbys.
const quorum = "ANY 1 (a, b, c)"

// A site is replicas on a cluster of PostgreSQL servers. They find the primary by
// themselves.
type site struct {
	t        *testing.T
	cluster  *pgcluster.Cluster
	program  string
	replicas []*child
	services []workload.Replica
	pulse    *pulse
}

// newSite starts a cluster and replicas of the program on it. All is gone when the
// test is over.
func newSite(t *testing.T, program string, opts pgcluster.Options) *site {
	t.Helper()
	cluster, err := pgcluster.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, cluster: cluster, program: program, pulse: &pulse{}}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// serve starts replicas on the database at the URL.
func (s *site) serve(n int, databaseURL string, args ...string) {
	s.t.Helper()
	for range n {
		c, err := launch(&journal{}, []string{"PADDOCK_DATABASE_URL=" + databaseURL}, s.program,
			append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
		s.must(err)
		s.t.Cleanup(func() { s.ends(c, syscall.SIGKILL) })
		address, err := c.await(s.t.Context(), `"msg":"listening","address":"([^"]+)"`)
		s.must(err)
		locks, err := client.New(client.Options{BaseURL: "http://" + address})
		s.must(err)
		s.replicas = append(s.replicas, c)
		s.services = append(s.services, workload.Replica{Via: address, Locks: beating{locks, s.pulse}, Stream: workload.StreamOf(locks.Stream)})
	}
}

// stopServing ends the replicas in good order, as for an upgrade.
func (s *site) stopServing() {
	s.t.Helper()
	for _, c := range s.replicas {
		s.ends(c, syscall.SIGTERM)
	}
	s.replicas, s.services = nil, nil
}

// ends ends a replica. What it said is of use if the test has failed.
func (s *site) ends(c *child, how syscall.Signal) {
	if err := c.end(how); err != nil {
		s.t.Error(err)
	}
	if s.t.Failed() {
		s.t.Logf("%v said last:\n%s", c.cmd.Args, lastWords(c.said.bytes()))
	}
}

// lastWords returns the newest of what a replica has said, but for what it says of every request.
func lastWords(said []byte) []byte {
	const most = 100
	lines := slices.DeleteFunc(bytes.SplitAfter(said, []byte("\n")), func(line []byte) bool {
		return bytes.Contains(line, []byte(`"msg":"request"`)) || bytes.Contains(line, []byte(`"msg":"request refused"`))
	})
	return bytes.Join(lines[max(0, len(lines)-most):], nil)
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// any is one of the replicas.
func (s *site) any() lock.Service { return s.services[0].Locks }

// program builds cmd/paddock and returns the path.
func program(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "paddock")
	compile(t, path, false, flags...)
	return path
}

// A pulse knows of the grants of all clients.
type pulse struct {
	mu      sync.Mutex
	grants  int
	last    time.Time
	longest time.Duration // between two grants since anew
}

// beating is a service whose grants the pulse counts.
type beating struct {
	lock.Service
	pulse *pulse
}

func (b beating) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	g, err := b.Service.Acquire(ctx, a)
	if err == nil {
		b.pulse.beat()
	}
	return g, err
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.grants, p.last = p.grants+1, now
}

// anew begins the search for the longest time without a grant.
func (p *pulse) anew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest = 0
}

// stopped returns the longest time without a grant.
func (p *pulse) stopped() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.longest
}

func (p *pulse) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grants
}

// beats waits for so many grants more.
func (s *site) beats(n int) {
	s.t.Helper()
	before := s.pulse.count()
	s.eventually("locks are granted", func() bool { return s.pulse.count() >= before+n })
}

// eventually waits until something is so.
func (s *site) eventually(what string, so func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-ctx.Done():
			s.t.Fatalf("still waiting: %s", what)
		}
	}
}
