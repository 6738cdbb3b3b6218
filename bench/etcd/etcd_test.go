package etcd_test

import (
	"testing"

	"github.com/paddock-lock/paddock/bench/etcd"
	"github.com/paddock-lock/paddock/bench/systemtest"
)

func TestMutex(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, new(etcd.Mutex), systemtest.Traits{})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, new(etcd.JSON), systemtest.Traits{})
}
