package pgtest

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package, stops the server that they had, and exits.
// It is to be all that TestMain does.
func Main(m *testing.M) {
	os.Exit(M{m}.Run())
}

// M is a testing.M whose Run ends with the server stopped, so that nothing of
// it is left to be taken for a leak:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }
type M struct {
	*testing.M
}

// Run runs the tests and returns the exit code.
func (m M) Run() int {
	code := m.M.Run()
	if err := shared.stop(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "pgtest: stopping the server: %v\n", err)
		return max(code, 1)
	}
	return code
}
