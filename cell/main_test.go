package cell_test

import (
	"os"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/testmain"
)

// TestMain runs many cases at once. Outside of bubbles they wait for leases and sessions to end.
func TestMain(m *testing.M) { os.Exit(testmain.M{M: m, Parallel: 16}.Run()) }
