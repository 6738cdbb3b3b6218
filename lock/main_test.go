package lock_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/internal/testkit/testmain"
)

// TestMain has the random commands of each property drawn more often in the long form of the tests.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(soak.Rounds(100, 1000))); err != nil {
		panic(err)
	}
	os.Exit(testmain.M{M: m}.Run())
}
