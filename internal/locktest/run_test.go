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
	locktest.Run(t, func(*testing.T) lock.Service { return locktest.AtRandom(m, m) })
}
