package testmain

import (
	"flag"
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
