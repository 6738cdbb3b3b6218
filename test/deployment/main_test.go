package deployment_test

import (
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/test/internal/program"
)

// paddock is the program that all tests of this process run. It is a package variable because tests have no other way
// to share it.
var built program.Built

func TestMain(m *testing.M) { built.Main(m) }

// TestTwoReplicasConform sends each call of the conformance suite to one of two processes on one database, as a load
// balancer would.
func TestTwoReplicasConform(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	_, first := built.Serve(t, databaseURL)
	_, second := built.Serve(t, databaseURL)
	locktest.Run(t, replica.Connect(t, client.Options{BaseURL: first}), replica.Connect(t, client.Options{BaseURL: second}))
}
