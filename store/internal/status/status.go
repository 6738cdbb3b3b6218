package status

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlService  = database.Statement(files, "service")
	sqlEarlier  = database.Statement(files, "earlier_epochs")
	sqlReplicas = database.Statement(files, "replicas")
	sqlServer   = database.Statement(files, "server")
	sqlStandbys = database.Statement(files, "standbys")
	sqlTables   = database.Statement(files, "tables")
)

const (
	// reuse is how long what was read is reused, and also that it could not be read.
	reuse = time.Second
	// readTimeout bounds a read.
	readTimeout = 2 * time.Second * database.Slowness
	// tablesTimeout bounds the part of a read that waits for a locked table.
	tablesTimeout = time.Second * database.Slowness
	// readEvery is the mean time between the reads that nobody has asked for.
	readEvery = time.Minute
	// showReplicas is for how long replicas without heartbeats are shown.
	showReplicas = time.Hour
)

// A Reader reads how one database is. It is safe for concurrent use.
type Reader struct {
	db        *database.DB
	self      lock.Replica
	retention time.Duration

	mu      sync.Mutex
	last    paddock.DatabaseInfo // what was read last
	readAt  time.Time            // when last was read, on this process's clock; zero: never
	triedAt time.Time
	problem string // of the last attempt
}

// New returns the Reader of the replica self, which keeps events for that long.
func New(db *database.DB, self lock.Replica, eventRetention time.Duration) *Reader {
	return &Reader{db: db, self: self, retention: eventRetention}
}

// Run reads once a minute until the database is stopped.
func (r *Reader) Run() {
	for running := true; running; running = r.db.Sleep(database.Jittered(readEvery)) {
		r.Info()
	}
}

// Info returns how the database is, as far as that is known. It takes little longer than readTimeout.
func (r *Reader) Info() paddock.DatabaseInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.triedAt) >= reuse {
		r.try()
	}
	info := r.last
	info.Problem = r.problem
	if !r.readAt.IsZero() {
		info.Age = time.Since(r.readAt)
	}
	return info
}

// try reads, and keeps what was read before if it cannot.
func (r *Reader) try() {
	ctx, cancel := context.WithTimeout(r.db.Context(), readTimeout)
	defer cancel()
	began := time.Now()
	var read paddock.DatabaseInfo
	err := r.db.Rest.AcquireFunc(ctx, func(conn *pgxpool.Conn) (err error) {
		read, err = r.read(ctx, conn)
		return err
	})
	r.problem = ""
	if err == nil {
		r.last, r.readAt = read, began
	} else {
		r.problem = r.explain(err)
		r.db.Log.Debug("cannot read the status of the database", "error", err)
	}
	r.triedAt = time.Now()
}

// explain returns why the database cannot be read, in a sentence. It has no part of the URL but the host, the role and
// the database.
func (r *Reader) explain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("The database does not answer within %v.", readTimeout)
	}
	text := strings.Join(strings.Fields(pgconnect.ExplainFailure(r.db.Explain(err)).Error()), " ")
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// read reads each part. Only what the service needs anyway can make it fail.
func (r *Reader) read(ctx context.Context, conn *pgxpool.Conn) (info paddock.DatabaseInfo, err error) {
	info.EventRetention = r.retention
	e := &info.Epoch
	err = conn.QueryRow(ctx, sqlService.In(r.db.Schema)).Scan(&info.AsOf, &e.Number, &e.BeganAt, &e.Reason, &e.Timeline, &e.Quorum,
		(*zeronull.Timestamptz)(&e.GrantsPausedUntil), (*zeronull.Timestamptz)(&info.OldestEvent))
	if err != nil {
		return info, err
	}
	if info.Earlier, err = r.earlier(ctx, conn); err != nil {
		return info, err
	}
	if info.Replicas, err = r.replicas(ctx, conn); err != nil {
		return info, err
	}
	hide := func(what string, err error) {
		if err != nil {
			info.Hidden = append(info.Hidden, what+": "+r.explain(err))
		}
	}
	mayStandbys, role, err := r.server(ctx, conn, &info.Server)
	hide("The server cannot be seen", err)
	if mayStandbys {
		info.Standbys, err = r.standbys(ctx, conn)
		hide("The standbys cannot be seen", err)
	} else if err == nil {
		info.Hidden = append(info.Hidden, fmt.Sprintf(
			"The standbys cannot be seen. As a superuser, run: grant pg_monitor to %s;", pgx.Identifier{role}.Sanitize()))
	}
	bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	if info.Tables, err = r.tables(bounded, conn); errors.Is(err, context.DeadlineExceeded) {
		info.Hidden = append(info.Hidden, "The sizes of the tables cannot be seen: another session has locked a table.")
	} else {
		hide("The sizes of the tables cannot be seen", err)
	}
	return info, nil
}

func (r *Reader) earlier(ctx context.Context, conn *pgxpool.Conn) ([]paddock.EarlierEpoch, error) {
	rows, err := conn.Query(ctx, sqlEarlier.In(r.db.Schema))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[paddock.EarlierEpoch])
}

func (r *Reader) replicas(ctx context.Context, conn *pgxpool.Conn) ([]paddock.ReplicaInfo, error) {
	rows, err := conn.Query(ctx, sqlReplicas.In(r.db.Schema), showReplicas)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p paddock.ReplicaInfo, err error) {
		var id int64
		err = row.Scan(&id, &p.Host, &p.Version, &p.StartedAt, &p.BeatAt, &p.Alive, &p.Connections, &p.Waiters, &p.Streams)
		p.ID, p.Self = IDOf(lock.Replica(id)), id == int64(r.self)
		return p, err
	})
}

// IDOf returns the id of the replica in 16 hexadecimal digits.
func IDOf(r lock.Replica) string { return fmt.Sprintf("%016x", uint64(r)) }

func (r *Reader) server(ctx context.Context, conn *pgxpool.Conn, s *paddock.ServerInfo) (mayStandbys bool, role string, err error) {
	var host string
	var port int
	err = conn.QueryRow(ctx, sqlServer.In(r.db.Schema)).Scan(&s.Version, &s.Standby, &host, &port, &s.StartedAt,
		&s.SynchronousStandbys, &mayStandbys, &role)
	if host != "" {
		s.Address = net.JoinHostPort(host, strconv.Itoa(port))
	}
	return mayStandbys, role, err
}

func (r *Reader) standbys(ctx context.Context, conn *pgxpool.Conn) ([]paddock.StandbyInfo, error) {
	rows, err := conn.Query(ctx, sqlStandbys.In(r.db.Schema))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s paddock.StandbyInfo, err error) {
		err = row.Scan(&s.Name, &s.Address, &s.State, &s.Sync, &s.LagBytes, &s.Lag)
		return s, err
	})
}

func (r *Reader) tables(ctx context.Context, conn *pgxpool.Conn) ([]paddock.TableInfo, error) {
	rows, err := conn.Query(ctx, sqlTables.In(r.db.Schema))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[paddock.TableInfo])
}
