package testmain

import (
	"flag"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
)

const parallel = 3

// TestSetUp is not parallel, because it sets up the whole process.
func TestSetUp(t *testing.T) {
	if err := setUp(parallel); err != nil {
		t.Fatal(err)
	}
	want := strconv.Itoa(max(parallel, runtime.GOMAXPROCS(0)))
	if got := flag.Lookup("test.parallel"); got.Value.String() != want {
		t.Errorf("%s tests run at once, want %s", got.Value, want)
	}
	if got := debug.SetGCPercent(gcPercent); os.Getenv("GOGC") == "" && got != gcPercent {
		t.Errorf("the process has GOGC=%d, want %d", got, gcPercent)
	}
}

// TestGOGCTakesPrecedence is not parallel, because it sets an environment variable.
func TestGOGCTakesPrecedence(t *testing.T) {
	const given = math.MaxInt32
	before := debug.SetGCPercent(given)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", strconv.Itoa(given))
	if err := setUp(parallel); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetGCPercent(given); got != given {
		t.Errorf("GOGC of the environment gave way to %d", got)
	}
}
