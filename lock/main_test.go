package lock_test

import (
	"os"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.M{M: m}.Run()) }
