package redis

import (
	"context"
	_ "embed" // the scripts
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

var (
	//go:embed lua/acquire.lua
	acquireScript string
	//go:embed lua/release.lua
	releaseScript string
	//go:embed lua/renew.lua
	renewScript string
)

// pollInterval is the mean pause between attempts for a held lock. With 32 clients and one name, longer
// pauses lower the rate of hand-offs, and shorter ones do not raise it.
const pollInterval = 5 * time.Millisecond

// locks is a lease.Store in Redis.
type locks struct {
	redis                   rueidis.Client
	acquire, release, renew *rueidis.Lua
	ttl                     string // milliseconds
}

// connect returns a store with one connection for one caller, or with shared connections for many.
func connect(addr string, shared bool) (*locks, error) {
	opts := rueidis.ClientOption{
		InitAddress:       []string{addr},
		ForceSingleClient: true,
		DisableCache:      true,
	}
	if !shared {
		opts.PipelineMultiplex = -1 // one connection
		opts.RingScaleEachConn = 8
		opts.ReadBufferEachConn, opts.WriteBufferEachConn = 4<<10, 4<<10
	}
	client, err := rueidis.NewClient(opts)
	if err != nil {
		return nil, err
	}
	return &locks{
		redis:   client,
		acquire: rueidis.NewLuaScript(acquireScript),
		release: rueidis.NewLuaScript(releaseScript),
		renew:   rueidis.NewLuaScript(renewScript),
		ttl:     strconv.FormatInt(lease.TTL.Milliseconds(), 10),
	}, nil
}

func (l *locks) Acquire(ctx context.Context, name string, wait bool) (lease.Grant, error) {
	id := uuid.NewString()
	return lease.Poll(ctx, wait, pollInterval, func() (lease.Grant, error) {
		token, err := l.run(ctx, l.acquire, []string{name, name + ":token"}, id, l.ttl)
		if err == nil && token == 0 {
			err = system.ErrHeld
		}
		return lease.Grant{ID: id, Token: token}, err
	})
}

func (l *locks) Renew(ctx context.Context, name, id string) error {
	return errorOf(l.run(ctx, l.renew, []string{name}, id, l.ttl))
}

func (l *locks) Release(ctx context.Context, name, id string) error {
	return errorOf(l.run(ctx, l.release, []string{name}, id))
}

// run runs a script without cancellation: for a context that can be canceled, the client would start
// two more goroutines.
func (l *locks) run(ctx context.Context, script *rueidis.Lua, keys []string, args ...string) (int64, error) {
	return script.Exec(context.WithoutCancel(ctx), l.redis, keys, args).AsInt64()
}

func errorOf(done int64, err error) error {
	if err == nil && done == 0 {
		return lease.ErrLost
	}
	return err
}

func (l *locks) Close() error {
	l.redis.Close()
	return nil
}
