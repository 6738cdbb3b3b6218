package pgtest

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package, leaves their server, and exits. TestMain must do nothing else.
func Main(m *testing.M) {
	os.Exit(M{m}.Run())
}

// M is a testing.M whose Run also leaves the server, before a check for leaks:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }
type M struct {
	*testing.M
}

// Run runs the tests and returns the exit code. In a program that was started to keep the shared server it does that
// instead, and ends the program.
func (m M) Run() int {
	if dir := os.Getenv(keeperVariable); dir != "" {
		os.Exit(keep(folder(dir)))
	}
	shared.main = true
	code := m.M.Run()
	if err := shared.stop(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "pgtest: leaving the server: %v\n", err)
		return max(code, 1)
	}
	return code
}
