package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// Mutex is the mutex of etcd's Go client, used as documented.
type Mutex struct {
	server
	shared *clientv3.Client
}

// Name implements system.System.
func (*Mutex) Name() string { return "etcd-mutex" }

// Title implements system.System.
func (*Mutex) Title() string { return "etcd mutex (clientv3)" }

// Start implements system.System.
func (m *Mutex) Start(ctx context.Context, dir string) (err error) {
	if err := m.start(ctx, dir); err != nil {
		return err
	}
	m.shared, err = connect(m.addr)
	return err
}

func connect(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{addr},
		DialTimeout: 10 * time.Second,
		Logger:      zap.NewNop(),
	})
}

// Stop implements system.System.
func (m *Mutex) Stop() (err error) {
	if m.shared != nil {
		err = m.shared.Close()
		m.shared = nil
	}
	return errors.Join(err, m.server.Stop())
}

// Client implements system.System.
func (m *Mutex) Client(context.Context) (system.Client, error) {
	session, err := concurrency.NewSession(m.shared, concurrency.WithTTL(int(lease.TTL/time.Second)))
	if err != nil {
		return nil, err
	}
	return locker{session}, nil
}

type locker struct{ session *concurrency.Session }

func (l locker) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	m := concurrency.NewMutex(l.session, "/locks/"+name)
	lock := m.TryLock
	if wait {
		lock = m.Lock
	}
	err := lock(ctx)
	if errors.Is(err, concurrency.ErrLocked) {
		return nil, system.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return locked{l.session, m}, nil
}

func (l locker) Close() error { return l.session.Close() }

type locked struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

// Token returns the revision that created the lock's key, which grows with each place in the queue.
// The mutex exposes it only as the condition for guarded transactions.
func (l locked) Token() int64 {
	owned := l.mutex.IsOwner()
	return owned.GetCompare().GetCreateRevision()
}

// Renew keeps the session alive, and thereby all its locks.
func (l locked) Renew(ctx context.Context) error {
	_, err := l.session.Client().KeepAliveOnce(ctx, l.session.Lease())
	return err
}

func (l locked) Release(ctx context.Context) error { return l.mutex.Unlock(ctx) }
