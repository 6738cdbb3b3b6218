package redis_test

import (
	"os"
	"testing"

	"github.com/paddock-lock/paddock/bench/front"
	"github.com/paddock-lock/paddock/bench/redis"
	"github.com/paddock-lock/paddock/bench/systemtest"
)

func TestMain(m *testing.M) {
	isFront, err := front.Run(map[string]front.Open{redis.FrontKind: redis.OpenFront})
	if err != nil {
		panic(err)
	}
	if !isFront {
		os.Exit(m.Run())
	}
}

func TestAlways(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, redis.Always(), systemtest.Traits{})
}

func TestEverySecond(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, redis.EverySecond(), systemtest.Traits{})
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	systemtest.Run(t, redis.HTTP(), systemtest.Traits{})
}
