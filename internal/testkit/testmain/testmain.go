// Package testmain sets up test processes. Only tests may import it.
package testmain

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
)

// gcPercent is GOGC in test processes. Some make much garbage and keep little: with Go's default, a third of their time
// goes into garbage collections. The largest has a heap of half a gibibyte this way.
const gcPercent = 400

// M is a testing.M whose Run sets up the process first:
//
//	func TestMain(m *testing.M) { os.Exit(testmain.M{M: m}.Run()) }
type M struct {
	*testing.M
	Parallel int // how many tests run at once; at least one per processor do
}

// Run runs the tests and returns the exit code. Temporary files are in memory, and garbage collections are rare.
// TMPDIR, GOGC and -parallel take precedence.
func (m M) Run() int {
	if err := setUp(m.Parallel); err != nil {
		fmt.Fprintf(os.Stderr, "testmain: %v\n", err)
		return 1
	}
	return m.M.Run()
}

func setUp(parallel int) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if err := useMemory(); err != nil {
		return err
	}
	parallel = max(parallel, runtime.GOMAXPROCS(0))
	return flag.Set("test.parallel", strconv.Itoa(parallel)) // the command line is read later
}
