package faults_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/pgcluster"
	"github.com/paddock-lock/paddock/verify/workload"
)

// quorum makes each commit wait for one of the standbys.
const quorum = "ANY 1 (a, b, c)"

// A clusterHarness is replicas on a cluster of PostgreSQL servers. They find the primary on their own.
type clusterHarness struct {
	t        *testing.T
	cluster  *pgcluster.Cluster
	program  string
	replicas []*child
	services []workload.Replica
	meter    *grantMeter
}

// newClusterHarness starts a cluster that ends with the test.
func newClusterHarness(t *testing.T, program string, opts pgcluster.Options) *clusterHarness {
	t.Helper()
	cluster, err := pgcluster.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	s := &clusterHarness{t: t, cluster: cluster, program: program, meter: &grantMeter{}}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// serve starts replicas on the database at the URL.
func (s *clusterHarness) serve(n int, databaseURL string, args ...string) {
	s.t.Helper()
	for range n {
		c, err := launch(&logBuffer{}, []string{"PADDOCK_DATABASE_URL=" + databaseURL}, s.program,
			append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
		s.must(err)
		s.t.Cleanup(func() { s.stopChild(c, syscall.SIGKILL) })
		address, err := c.awaitOutput(s.t.Context(), `"msg":"listening","address":"([^"]+)"`)
		s.must(err)
		locks, err := client.New(client.Options{BaseURL: "http://" + address})
		s.must(err)
		s.replicas = append(s.replicas, c)
		s.services = append(s.services, workload.Replica{Via: address, Locks: countedGrants{locks, s.meter},
			Stream: workload.StreamOf(locks.Stream)})
	}
}

// stopServing terminates the replicas, as for an upgrade.
func (s *clusterHarness) stopServing() {
	s.t.Helper()
	for _, c := range s.replicas {
		s.stopChild(c, syscall.SIGTERM)
	}
	s.replicas, s.services = nil, nil
}

// stopChild stops a child process, and logs its output if the test has failed.
func (s *clusterHarness) stopChild(c *child, how syscall.Signal) {
	if err := c.stop(how); err != nil {
		s.t.Error(err)
	}
	if s.t.Failed() {
		s.t.Logf("last output of %v:\n%s", c.cmd.Args, lastLines(c.output.bytes()))
	}
}

// lastLines returns the newest lines of a replica's log without those about requests.
func lastLines(output []byte) []byte {
	const most = 100
	lines := slices.DeleteFunc(bytes.SplitAfter(output, []byte("\n")), func(line []byte) bool {
		return bytes.Contains(line, []byte(`"msg":"request"`)) || bytes.Contains(line, []byte(`"msg":"request refused"`))
	})
	return bytes.Join(lines[max(0, len(lines)-most):], nil)
}

func (s *clusterHarness) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// first returns the first replica.
func (s *clusterHarness) first() lock.Service { return s.services[0].Locks }

// A grantMeter counts the grants to all clients.
type grantMeter struct {
	mu      sync.Mutex
	grants  int
	last    time.Time
	longest time.Duration // between two grants since reset
}

// countedGrants is a service whose grants are counted.
type countedGrants struct {
	lock.Service
	meter *grantMeter
}

func (b countedGrants) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	g, err := b.Service.Acquire(ctx, a)
	if err == nil {
		b.meter.add()
	}
	return g, err
}

func (p *grantMeter) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.grants, p.last = p.grants+1, now
}

// reset restarts the search for the longest time without a grant.
func (p *grantMeter) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest = 0
}

// longestGap returns the longest time without a grant.
func (p *grantMeter) longestGap() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.longest
}

func (p *grantMeter) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grants
}

// awaitGrants waits for n more grants.
func (s *clusterHarness) awaitGrants(n int) {
	s.t.Helper()
	before := s.meter.count()
	s.eventually("locks are granted", func() bool { return s.meter.count() >= before+n })
}

// eventually waits until so returns true.
func (s *clusterHarness) eventually(what string, so func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), stepTimeout)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-ctx.Done():
			s.t.Fatalf("timeout: %s", what)
		}
	}
}

// docsOperations is the page with the roles and rights that operators need.
const docsOperations = "../../docs/operations.md"

// The roles on that page, with their passwords.
var owner, app = [2]string{"paddock_owner", "change me"}, [2]string{"paddock_app", "change me, too"}

// newRestrictedCluster starts a cluster under quorum with the roles and rights of the page: the owner owns
// the tables, and the replicas' role may not change the schema.
func newRestrictedCluster(t *testing.T, program string) *clusterHarness {
	t.Helper()
	s := newClusterHarness(t, program, pgcluster.Options{Synchronous: quorum})
	text, err := os.ReadFile(docsOperations)
	s.must(err)
	blocks := regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 2 {
		t.Fatalf("%s has %d blocks of SQL", docsOperations, len(blocks))
	}
	roles := strings.Replace(blocks[0][1], "create database paddock owner", "alter database paddock owner to", 1)
	s.must(s.cluster.Primary().Exec(t.Context(), roles))
	s.must(s.runPaddockAs(t.Context(), s.cluster.URLAs(owner[0], owner[1]), "migrate", "up"))
	s.must(s.asOwner(blocks[1][1]))
	s.must(s.runPaddockAs(t.Context(), s.appURL(), "epoch", "quorum", "on"))
	return s
}

// appURL is the database URL of the replicas.
func (s *clusterHarness) appURL() string { return s.cluster.URLAs(app[0], app[1]) }

func (s *clusterHarness) asOwner(sql string) (err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), stepTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.cluster.URLAs(owner[0], owner[1]))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, sql)
	return err
}
