package locktest_test

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/locktest"
	"github.com/paddock-lock/paddock/lock"
)

func TestTheRulesAloneConform(t *testing.T) {
	t.Parallel()
	m, err := newMemory()
	if err != nil {
		t.Fatal(err)
	}
	locktest.Run(t, func(*testing.T) lock.Service { return replica{m, 1} })
}

func TestTwoReplicasOfTheRulesConform(t *testing.T) {
	t.Parallel()
	m, err := newMemory()
	if err != nil {
		t.Fatal(err)
	}
	both := locktest.AtRandom(replica{m, 1}, replica{m, 2})
	locktest.Run(t, func(*testing.T) lock.Service { return both })
}
