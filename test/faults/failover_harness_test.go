package faults_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
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
	meter    *meter
	quorum   bool // no fail-over forgets a lease
}

// newClusterHarness starts a cluster that ends with the test.
func newClusterHarness(t *testing.T, program string, opts pgcluster.Options) *clusterHarness {
	t.Helper()
	cluster, err := pgcluster.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	s := &clusterHarness{t: t, cluster: cluster, program: program, meter: &meter{}}
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
		c, address := serve(s.t, s.program, []string{"PADDOCK_DATABASE_URL=" + databaseURL}, args...)
		r := replicaAt(s.t, address)
		r.Locks = meteredService{r.Locks, s.meter}
		s.replicas, s.services = append(s.replicas, c), append(s.services, r)
	}
}

// stopServing terminates the replicas, as for an upgrade.
func (s *clusterHarness) stopServing() {
	s.t.Helper()
	for _, c := range s.replicas {
		stopChild(s.t, c, syscall.SIGTERM)
	}
	s.replicas, s.services = nil, nil
}

func (s *clusterHarness) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// first returns the first replica.
func (s *clusterHarness) first() paddock.Service { return s.services[0].Locks }

// awaitGrants waits for n more grants.
func (s *clusterHarness) awaitGrants(n int64) {
	s.t.Helper()
	before := s.meter.grants.Load()
	s.eventually("locks are granted", func() bool { return s.meter.grants.Load() >= before+n })
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
	s.quorum = true
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
