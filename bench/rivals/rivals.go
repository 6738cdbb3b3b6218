package rivals

import (
	"github.com/paddock-lock/paddock/bench/etcd"
	"github.com/paddock-lock/paddock/bench/front"
	"github.com/paddock-lock/paddock/bench/postgres"
	"github.com/paddock-lock/paddock/bench/redis"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/bench/zookeeper"
)

// Systems returns all rivals, not started.
func Systems() []system.System {
	return []system.System{
		new(etcd.Mutex),
		new(etcd.JSON),
		new(zookeeper.Recipe),
		redis.Always(),
		redis.EverySecond(),
		redis.HTTP(),
		new(postgres.PGLock),
		new(postgres.Transaction),
		postgres.HTTP(),
		new(postgres.Advisory),
	}
}

// Front must be called first by a program that starts the systems. If it returns true, the process was
// one of their fronts and should exit.
func Front() (bool, error) {
	return front.Run(map[string]front.Open{
		redis.FrontKind:    redis.OpenFront,
		postgres.FrontKind: postgres.OpenFront,
	})
}
