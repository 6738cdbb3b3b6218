package system

import (
	"context"
	"errors"
	"time"
)

// ErrHeld is returned by an Acquire that does not wait if another client holds the lock.
var ErrHeld = errors.New("held")

// A Role groups processes in the CPU figures.
type Role string

// The roles of processes. The load runs in the bench's own process.
const (
	Server   Role = "server"
	Database Role = "database"
)

// A Process was started by a System. It stands for its descendants, too.
type Process struct {
	Role Role
	PID  int
}

// A System is a lock service with the servers that it needs. It is started once, serves several runs,
// and is stopped.
type System interface {
	// Name returns a short, stable name that is valid as a file name: "etcd-mutex".
	Name() string
	// Title returns the name for tables: "etcd mutex (clientv3)".
	Title() string
	// Start starts the servers on loopback, with their data in the directory. They write to disk
	// with fsync on, unless the Title says otherwise. An error that wraps ErrMissing names what
	// to install.
	Start(ctx context.Context, dir string) error
	// Stop stops the servers. It may be called after a failed Start.
	Stop() error
	// Processes returns the running processes.
	Processes() []Process
	// Client returns a client for one goroutine of the load. Clients may share connections if the
	// system's own clients do. When the context ends, the client's calls may be canceled.
	Client(ctx context.Context) (Client, error)
}

// ErrMissing means that a program is not installed.
var ErrMissing = errors.New("not installed")

// A Client acquires and releases locks, one call at a time.
type Client interface {
	// Acquire acquires the lock. If another client holds it, Acquire waits or returns ErrHeld. With
	// wait, a system that cannot wait or has no exclusion returns ErrUnsupported.
	Acquire(ctx context.Context, name string, wait bool) (Lease, error)
	// Close releases the client's resources.
	Close() error
}

// A SelfRenewing Client renews its leases by itself until they are released.
type SelfRenewing interface {
	Client
	// Renewed returns a channel with the duration of each renewal.
	Renewed() <-chan time.Duration
}

// A Lease is a held lock.
type Lease interface {
	// Token returns the fencing token, which is greater than the previous holder's. It is zero if
	// the system has no tokens.
	Token() int64
	// Renew extends the lease. It returns ErrUnsupported if leases are tied to connections.
	Renew(ctx context.Context) error
	// Release releases the lock.
	Release(ctx context.Context) error
}

// ErrUnsupported means that a system does not support a call.
var ErrUnsupported = errors.New("not supported")

// A PostgresBacked System keeps its locks in PostgreSQL, so that its WAL can be measured.
type PostgresBacked interface {
	System
	// DatabaseURL returns the URL of the database of a started system.
	DatabaseURL() string
}

// An Unordered System does not promise increasing tokens. Inversions are counted and are not errors.
type Unordered interface {
	System
	Unordered()
}

// A Batcher is a Client with batch calls.
type Batcher interface {
	Client
	// AcquireAll acquires the locks, which must be free, without waiting.
	AcquireAll(ctx context.Context, names []string) ([]Lease, error)
	// ReleaseAll releases the locks.
	ReleaseAll(ctx context.Context, leases []Lease) error
}

// A Loader is a System that generates and measures its own load. Its Client is not used.
type Loader interface {
	System
	// Load runs the load with that many clients for about d; LoadResult has the exact time.
	Load(ctx context.Context, clients int, d time.Duration) (LoadResult, error)
}

// LoadResult is the result of a Loader.
type LoadResult struct {
	Unit      string // what an operation is, plural
	Elapsed   time.Duration
	Latencies []time.Duration // of each operation
	CPU       time.Duration   // of the load generator
}
