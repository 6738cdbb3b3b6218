//go:build unix

package pgtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/testmain"
)

// parallel is how many tests of a package run at once, at least: many of them wait for time. With go test's two
// packages at once these are enough to keep two processors busy; more would make each test slower, and some too slow.
const parallel = 12

// Main runs the tests of a package, leaves their server, and exits. TestMain must do nothing else.
func Main(m *testing.M) {
	os.Exit(M{M: m}.Run())
}

// M is a testing.M whose Run also leaves the server, before a check for leaks:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }
type M struct {
	*testing.M
	Parallel int // how many tests run at once, at least; zero is 12
}

// Run runs the tests and returns the exit code. In a program that was started to keep the shared server it does that
// instead, and ends the program. Unless -parallel is given, several tests run at once on few cores, too.
func (m M) Run() int {
	if dir := os.Getenv(keeperVariable); dir != "" {
		os.Exit(keep(folder(dir)))
	}
	shared.main = true
	code := testmain.M{M: m.M, Parallel: cmp.Or(m.Parallel, parallel)}.Run()
	if err := shared.stop(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "pgtest: leaving the server: %v\n", err)
		return max(code, 1)
	}
	return code
}
