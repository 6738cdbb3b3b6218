package waiters

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

const (
	// heartbeatInterval is the mean time between two heartbeats. A replica counts as alive for lock.ReplicaTTL after
	// the last, so it may miss one or two.
	heartbeatInterval = 500 * time.Millisecond
	// keepReplicas is how long the row of a replica without heartbeats is kept.
	keepReplicas = time.Hour
	// wakeSetsEvery is how many heartbeats pass between two Claims of the calls that wait for several locks, see
	// wakeSets.
	wakeSetsEvery = 4
	// forgetTimeout bounds the deletion of a replica's row when it stops.
	forgetTimeout = time.Second
)

var (
	sqlHeartbeat      = database.Statement(files, "heartbeat")
	sqlPeers          = database.Statement(files, "peers")
	sqlStaleWaiters   = database.Statement(files, "stale_waiters")
	sqlForgetReplicas = database.Statement(files, "forget_replicas")
)

// Hooks connect the tasks of a Registry with the rest of the replica. Each is called from one goroutine at a time.
type Hooks struct {
	Watching  func() bool // reports whether this replica has subscribers of events
	Events    func()      // is called when other replicas may have written events
	Heartbeat func()      // is called after each heartbeat
	// Describe returns what heartbeats say of the process: its host, version, start (on its own clock), connections and
	// streams.
	Describe func() paddock.ReplicaInfo
	// Orphans is called when a replica has gone, and after an outage: locks may have ends that no living replica knows.
	Orphans func()
}

// Run deletes the rows of replicas that died long ago, sends heartbeats and notifications, and listens for
// notifications unless there is a pooler in between. It returns when the database is stopped. It uses up to two
// connections of the database's pool at once, and one of its own. Errors are logged, and the task is retried.
func (r *Registry) Run(h Hooks) {
	var tasks sync.WaitGroup
	tasks.Go(r.forgetDead)
	tasks.Go(func() { r.sendHeartbeats(h) })
	tasks.Go(r.sendNotifications)
	tasks.Go(r.searchForDeadlocks)
	if !r.db.Pooled {
		tasks.Go(newListener(r, h.Events).run)
	}
	tasks.Wait()
}

func (r *Registry) sendHeartbeats(h Hooks) {
	// The first heartbeat is sent at once: other replicas do not notice the death of a replica that never sent one.
	for last, n, running := time.Now(), 1, true; running; running, n = r.db.Sleep(database.Jittered(heartbeatInterval)), n+1 {
		if n%wakeSetsEvery == 0 {
			r.wakeSets()
		}
		began := time.Now() // the heartbeat counts from no later
		gone, err := r.heartbeat(last, h.Watching(), h.Describe())
		r.db.Report("heartbeat", err)
		if err == nil {
			if gone || r.db.Outage.After(last) {
				h.Orphans()
			}
			last = began
		} else {
			r.db.Outage.Note()
		}
		h.Heartbeat()
	}
}

// heartbeat sends a heartbeat and reads those of the others. It wakes the calls that need not wait any more; or all
// calls if the last heartbeat, sent at last or later, may have run out, since other replicas may have skipped them. A
// long search for stale waiters or a long pause is no silence before that. gone reports whether a replica that was alive
// then has stopped or died.
func (r *Registry) heartbeat(last time.Time, watching bool, p paddock.ReplicaInfo) (gone bool, err error) {
	names, places, attachments, waiting := r.queued()
	before := r.peers
	err = r.db.Relaxed(func(b *pgx.Batch) {
		b.Queue(sqlHeartbeat.In(r.db.Schema), int64(r.self), waiting, watching, lock.ReplicaTTL,
			p.Connections, p.Streams, time.Since(p.StartedAt), p.Host, p.Version)
		b.Queue(sqlPeers.In(r.db.Schema), int64(r.self)).QueryRow(r.scanPeers)
	})
	gone = slices.ContainsFunc(before, func(peer lock.Replica) bool { return !slices.Contains(r.peers, peer) })
	if err == nil && time.Since(last) > lock.ReplicaTTL {
		r.WakeAll()
	}
	if err == nil && len(names) > 0 { // takes long for thousands of calls
		err = r.db.Within(func(ctx context.Context) error {
			rows, err := r.db.Rest.Query(ctx, sqlStaleWaiters.In(r.db.Schema), names, places, attachments)
			if err != nil {
				return err
			}
			stale, err := pgx.CollectRows(rows, pgx.RowTo[lock.Attachment])
			r.wake(stale...)
			return err
		})
	}
	return gone, err
}

// scanPeers reads what the other replicas have said in their heartbeats.
func (r *Registry) scanPeers(peers pgx.Row) error {
	var waiting int64
	var watching bool
	var alive []lock.Replica
	err := peers.Scan(&waiting, &watching, &alive)
	if err == nil {
		r.remote.Store(waiting)
		r.watched.Store(watching)
		r.peers = alive
	}
	return err
}

// forgetDead deletes the rows of replicas that died long ago. If that fails, the next replica to start or stop does it.
func (r *Registry) forgetDead() {
	r.logForgetError(r.db.Unhurried(func(ctx context.Context) error { return r.forget(ctx, 0) }))
}

// forgetSelf deletes the row of this replica, too. Unlike forgetDead, it also works after DB.Stop.
func (r *Registry) forgetSelf() {
	ctx, cancel := context.WithTimeout(context.Background(), forgetTimeout)
	defer cancel()
	r.logForgetError(r.forget(ctx, r.self))
}

func (r *Registry) forget(ctx context.Context, stopped lock.Replica) error {
	_, err := r.db.Rest.Exec(ctx, sqlForgetReplicas.In(r.db.Schema), int64(stopped), keepReplicas)
	return err
}

func (r *Registry) logForgetError(err error) {
	if err != nil {
		r.db.Log.Debug("cannot delete rows of dead replicas", "error", err)
	}
}
