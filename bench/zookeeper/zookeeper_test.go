package zookeeper_test

import (
	"testing"

	"github.com/paddock-lock/paddock/bench/systemtest"
	"github.com/paddock-lock/paddock/bench/zookeeper"
)

func TestRecipe(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, new(zookeeper.Recipe), systemtest.Traits{NoRenewal: true})
}
