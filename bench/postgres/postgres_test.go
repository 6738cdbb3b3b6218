package postgres_test

import (
	"os"
	"testing"

	"github.com/paddock-lock/paddock/bench/front"
	"github.com/paddock-lock/paddock/bench/postgres"
	"github.com/paddock-lock/paddock/bench/systemtest"
)

func TestMain(m *testing.M) {
	isFront, err := front.Run(map[string]front.Open{postgres.FrontKind: postgres.OpenFront})
	if err != nil {
		panic(err)
	}
	if !isFront {
		os.Exit(m.Run())
	}
}

func TestPGLock(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, new(postgres.PGLock), systemtest.Wants{Unordered: true})
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, new(postgres.Transaction), systemtest.Wants{})
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, postgres.HTTP(), systemtest.Wants{})
}

func TestAdvisory(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, new(postgres.Advisory), systemtest.Wants{Unordered: true, NoRenewal: true})
}
