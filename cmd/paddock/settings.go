package main

import (
	"log/slog"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// The settings are flags of whatever runs the service.
type settings struct {
	MinTTL     time.Duration `name:"min-ttl" default:"100ms" variable:"PADDOCK_MIN_TTL" help:"Least TTL that may be asked for."`
	MaxTTL     time.Duration `name:"max-ttl" default:"24h" variable:"PADDOCK_MAX_TTL" help:"Greatest TTL that may be asked for."`
	DefaultTTL time.Duration `name:"default-ttl" placeholder:"DURATION" variable:"PADDOCK_DEFAULT_TTL" help:"TTL of an acquire that asks for none (30s, or the nearest that is allowed)."`
	MaxGrace   time.Duration `name:"max-grace" default:"1m" variable:"PADDOCK_MAX_GRACE" help:"Greatest grace that may be asked for; 0s allows none."`

	MaxWaiters        int    `placeholder:"N" variable:"PADDOCK_MAX_WAITERS" help:"How many calls may wait in queues at once, on all replicas together (10000)."`
	MaxWaitersPerLock int    `placeholder:"N" variable:"PADDOCK_MAX_WAITERS_PER_LOCK" help:"How many may wait for one lock (1000)."`
	PoolerMode        string `enum:"none,transaction" default:"none" placeholder:"MODE" variable:"PADDOCK_POOLER_MODE" help:"The database is behind a pooler in transaction mode, which cannot LISTEN: serve those who wait by asking again and again, up to a second late."`

	BatchWorkers      int           `placeholder:"N" variable:"PADDOCK_BATCH_WORKERS" help:"How many batches run side by side (1)."`
	EventRetention    time.Duration `placeholder:"DURATION" variable:"PADDOCK_EVENT_RETENTION" help:"For how long to keep what happened (168h)."`
	IdleLockRetention time.Duration `placeholder:"DURATION" variable:"PADDOCK_IDLE_LOCK_RETENTION" help:"For how long to keep a lock that nobody uses (168h)."`

	RequestTimeout time.Duration `default:"10s" variable:"PADDOCK_REQUEST_TIMEOUT" help:"How long a request may take."`
	DrainDelay     time.Duration `default:"0s" variable:"PADDOCK_DRAIN_DELAY" help:"When told to stop: for how long to go on, saying not ready, so that a balancer notices."`
}

// check returns a usage error that says which settings do not go together.
func (s settings) check() error {
	if s.RequestTimeout <= 0 || s.DrainDelay < 0 || s.MinTTL <= 0 {
		return usagef("--request-timeout and --min-ttl must be above zero, --drain-delay not below")
	}
	if err := s.store(nil).Check(); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// bounds returns what callers may ask for. Among flags a zero grace is a zero
// grace; among Bounds it would be the default.
func (s settings) bounds() lock.Bounds {
	b := lock.Bounds{MinTTL: s.MinTTL, MaxTTL: s.MaxTTL, DefaultTTL: s.DefaultTTL, MaxGrace: s.MaxGrace, MaxWaiters: s.MaxWaitersPerLock}
	if b.MaxGrace == 0 {
		b.MaxGrace = -1
	}
	return b
}

func (s settings) store(log *slog.Logger) store.Options {
	return store.Options{
		Bounds: s.bounds(), Log: log, BatchWorkers: s.BatchWorkers, MaxWaiters: s.MaxWaiters, TransactionPooling: s.PoolerMode == "transaction",
		EventRetention: s.EventRetention, IdleLockRetention: s.IdleLockRetention,
	}
}
