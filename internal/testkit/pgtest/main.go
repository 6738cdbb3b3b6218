package pgtest

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package, stops their server, and exits. TestMain must do nothing else.
func Main(m *testing.M) {
	os.Exit(M{m}.Run())
}

// M is a testing.M whose Run also stops the server, before a check for leaks:
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
