package faults_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgcluster"
)

// docsOperations is the page that tells operators which rights the roles need.
const docsOperations = "../../docs/operations.md"

// Who is who on that page, with their passwords.
var owner, app = [2]string{"paddock_owner", "change me"}, [2]string{"paddock_app", "change me, too"}

// newRestrictedCluster starts a cluster under quorum, with the roles and rights that the page
// gives: the tables are the owner's, and what serves may not touch their shape.
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

// appURL leads to the database for what serves.
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
