package system

import (
	"context"
	"errors"
	"time"
)

// ErrHeld says that a lock is somebody else's, to an Acquire that does not wait.
var ErrHeld = errors.New("held")

// A Role says to which share of the work a process belongs.
type Role string

// The roles of processes. The load itself runs in the bench's own.
const (
	Server   Role = "server"
	Database Role = "database"
)

// A Process is one that a System started. What it forks counts with it.
type Process struct {
	Role Role
	PID  int
}

// A System is something that gives out locks, with the servers it needs. It is started
// once, serves one run after the other, and is stopped.
type System interface {
	// Name is short, stable, and fit for a file name: "etcd-mutex".
	Name() string
	// Title is for tables: "etcd mutex (clientv3)".
	Title() string
	// Start starts the servers, on loopback, with what they keep in the directory. What they
	// keep is on disk, with fsync on, unless the Title says otherwise. An error that wraps
	// ErrMissing says what is to be installed.
	Start(ctx context.Context, dir string) error
	// Stop ends what Start started. It may be called after a Start that failed.
	Stop() error
	// Processes are those that run.
	Processes() []Process
	// Client returns a client for one of the goroutines that make the load. Clients may share
	// connections where the system's own clients do. When the context ends, so may its calls.
	Client(ctx context.Context) (Client, error)
}

// ErrMissing says that a program is not installed.
var ErrMissing = errors.New("not installed")

// A Client takes and gives back locks, one call at a time.
type Client interface {
	// Acquire takes the lock. If it is somebody else's it waits for it, or returns ErrHeld. A
	// system that cannot wait, or does not exclude anybody, returns ErrUnsupported if it is to wait.
	Acquire(ctx context.Context, name string, wait bool) (Lease, error)
	// Close gives up what the client has.
	Close() error
}

// A SelfRenewing is a Client whose leases are renewed by it, at moments of its own choice, until they
// are released.
type SelfRenewing interface {
	Client
	// Renewed receives how long each renewal took.
	Renewed() <-chan time.Duration
}

// A Lease is a lock that was taken.
type Lease interface {
	// Token is greater than that of whoever had the lock before; zero where the system has none.
	Token() int64
	// Renew keeps the lease alive; ErrUnsupported where leases are kept by connections.
	Renew(ctx context.Context) error
	// Release gives the lock back.
	Release(ctx context.Context) error
}

// ErrUnsupported says that a system has no such thing.
var ErrUnsupported = errors.New("not supported")

// A PostgresBacked System keeps its locks in PostgreSQL, so that what it writes there can be
// measured.
type PostgresBacked interface {
	System
	// DatabaseURL is where they are, once the System is started.
	DatabaseURL() string
}

// An Unordered System has tokens that need not be greater than the one before. How often they
// are not is counted, and no error.
type Unordered interface {
	System
	Unordered()
}

// A Batcher is a Client that has many things done by one call.
type Batcher interface {
	Client
	// AcquireAll takes all the locks, which are free, without waiting.
	AcquireAll(ctx context.Context, names []string) ([]Lease, error)
	// ReleaseAll gives them back.
	ReleaseAll(ctx context.Context, leases []Lease) error
}

// A Loader is a System that makes its own load and measures it, because it is a program of
// its own. Nobody asks it for a Client.
type Loader interface {
	System
	// Load works with so many clients for so long, or for as much longer as Loaded says.
	Load(ctx context.Context, clients int, d time.Duration) (LoadResult, error)
}

// LoadResult is what a Loader did.
type LoadResult struct {
	Unit      string // what an operation is, in the plural
	Elapsed   time.Duration
	Latencies []time.Duration // of each operation
	CPU       time.Duration   // that the load itself took
}
