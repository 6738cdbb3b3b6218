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
	systemtest.Run(t, new(postgres.PGLock), systemtest.Traits{Unordered: true})
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, new(postgres.Transaction), systemtest.Traits{})
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, postgres.HTTP(), systemtest.Traits{})
}

func TestAdvisory(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, new(postgres.Advisory), systemtest.Traits{Unordered: true, NoRenewal: true})
}
