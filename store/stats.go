package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/store/internal/expiry"
	"github.com/paddock-lock/paddock/store/internal/status"
)

// Stats are what a Store knows of itself at one instant, for metrics.
type Stats struct {
	Locks LockCounts
	Epoch int64
	// GrantsPaused is for how long nothing is granted from now on; zero for no pause.
	GrantsPaused time.Duration
	Freezes      int // in force
	// EndlessFreeze is how long the oldest freeze without an end has lasted; zero without one.
	EndlessFreeze time.Duration
	Waiting       int // calls that wait at this replica
	LateCommits   int // commits that have not been answered for a second
	Pools         []Pool
}

// LockCounts is what one pass of the scan over all locks has counted.
type LockCounts = expiry.LockCounts

// A Pool is one of the two pools of connections to the database.
type Pool struct {
	Name        string // deciding, for commands; or rest
	Max         int
	Idle, InUse int
	Made        int64         // connections, since the Store was opened
	Acquired    int64         // times that one was taken out of the pool
	Waited      time.Duration // in all, for a connection to come free or to be made
}

// Stats returns what the Store knows of itself. It asks the database nothing.
func (s *Store) Stats() Stats {
	epoch, paused := s.epochs.State()
	freezes := s.policy.Newest().FreezesAt(time.Now())
	var endless time.Duration
	for _, f := range freezes {
		if f.Until.IsZero() {
			endless = max(endless, time.Since(f.FrozenAt))
		}
	}
	return Stats{
		Freezes: len(freezes), EndlessFreeze: endless,
		Locks: s.timers.LockCounts(), Epoch: epoch, GrantsPaused: paused,
		Waiting: s.waiters.Waiting(), LateCommits: s.engine.Late(),
		Pools: []Pool{poolStats("deciding", s.db.Deciding), poolStats("rest", s.db.Rest)},
	}
}

// ReplicaID returns the id of the replica, as Info and logs have it.
func (s *Store) ReplicaID() string { return status.IDOf(s.self) }

// Info returns how the database is, for operators. It takes little longer than two seconds. If the database cannot be
// read at present, it is what was read last, with its age, and the problem.
func (s *Store) Info() paddock.DatabaseInfo { return s.status.Info() }

// Epoch returns the number of the newest epoch.
func (s *Store) Epoch() int64 {
	number, _ := s.epochs.State()
	return number
}

func poolStats(name string, p *pgxpool.Pool) Pool {
	st := p.Stat()
	return Pool{
		Name: name, Max: int(st.MaxConns()), Idle: int(st.IdleConns()), InUse: int(st.AcquiredConns()),
		Made: st.NewConnsCount(), Acquired: st.AcquireCount(), Waited: st.EmptyAcquireWaitTime(),
	}
}
