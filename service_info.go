package paddock

import (
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A ServiceInfo is how the service itself is: its replicas, its databases, and how the replica that answers is
// configured.
type ServiceInfo struct {
	// Settings are those of the replica that answers, without passwords. Another replica may have others.
	Settings []Setting
	// Databases are the only one, or that of each cell.
	Databases []DatabaseInfo
}

// A Setting is a setting of paddock serve, with its value as a flag gives it; empty: none.
type Setting struct {
	Name, Value string
	Source      string // default, flag, environment or file
	Place       string // in its source: the variable, or the file and the line
}

// A DatabaseInfo is what a replica knows of a database. All instants are on the clock of the database.
type DatabaseInfo struct {
	Cell string // empty: the service has one database
	// Problem is why the database cannot be read now. What follows was read earlier, at AsOf. Empty: it was read within
	// the last second.
	Problem string
	AsOf    time.Time     // zero: this replica has never read it, and knows nothing else of it
	Age     time.Duration // since AsOf

	Epoch EpochInfo
	// Earlier are the epochs before Epoch, the newest first, at most nine.
	Earlier  []EarlierEpoch
	Replicas []ReplicaInfo // those of the last hour, by their start
	Server   ServerInfo
	Standbys []StandbyInfo
	Tables   []TableInfo // the largest first
	// OldestEvent is when the oldest event that is kept happened; zero: there is none. Events are pruned when they are
	// older than EventRetention, in parts, so it may be a little earlier.
	OldestEvent    time.Time
	EventRetention time.Duration
	// Hidden says, a sentence for each, what cannot be seen, and what to do to see it.
	Hidden []string
}

// An EpochInfo is the newest epoch: the part of the history of the locks since a fail-over, a restore or the
// installation.
type EpochInfo struct {
	Number   int64
	BeganAt  time.Time
	Reason   string // why it began, which is also why grants were paused
	Timeline string // of the server's log, eight hexadecimal digits
	Quorum   bool   // nothing is decided without a standby
	// GrantsPausedUntil is until when nothing is granted; zero: grants were not paused. It may be in the past.
	GrantsPausedUntil time.Time
}

// An EarlierEpoch is what is told of every epoch. Of the newest one there is more, see [EpochInfo].
type EarlierEpoch struct {
	Number  int64
	BeganAt time.Time
	Reason  string // why it began
}

// EpochsAmong tells which of the known epochs began where in a list of events, the newest first, that covers the time from
// since to until. Entry i of the answer has the epochs that began after event i and before the one above it, or before until
// if i is 0; the last entry has those that began after since and before all events. Each entry has the newest first. A zero
// until is no bound, and a zero since leaves the last entry empty. With several databases all are empty: an event does not
// tell which database it is of.
func (s ServiceInfo) EpochsAmong(events []lock.Event, since, until time.Time) [][]EarlierEpoch {
	begun := make([][]EarlierEpoch, len(events)+1)
	for i, e := range events {
		begun[i] = s.epochsBegun(e.At, until)
		until = e.At
	}
	if !since.IsZero() {
		begun[len(events)] = s.epochsBegun(since, until)
	}
	return begun
}

// epochsBegun returns the known epochs that began after the instant, but not after until, the newest first.
func (s ServiceInfo) epochsBegun(after, until time.Time) (begun []EarlierEpoch) {
	if len(s.Databases) != 1 || s.Databases[0].Cell != "" {
		return nil
	}
	d := s.Databases[0]
	for _, e := range append([]EarlierEpoch{{Number: d.Epoch.Number, BeganAt: d.Epoch.BeganAt, Reason: d.Epoch.Reason}}, d.Earlier...) {
		if e.BeganAt.After(after) && (until.IsZero() || !e.BeganAt.After(until)) {
			begun = append(begun, e)
		}
	}
	return begun
}

// A ReplicaInfo is a process of the service, as its last heartbeat has described it. With several databases a process
// sends heartbeats to each.
type ReplicaInfo struct {
	ID        string // 16 hexadecimal digits; another one in each database
	Self      bool   // it is the replica that answers
	Host      string // the name of the machine, or of the container, with the port that it listens on; empty: unknown
	Version   string
	StartedAt time.Time
	BeatAt    time.Time // when it sent its last heartbeat
	// Alive is false after a heartbeat was missed for lock.ReplicaTTL: the replica has died, or cannot reach the database.
	// One that was stopped is not listed.
	Alive       bool
	Connections int // open ones of clients
	Waiters     int // calls that wait for locks
	Streams     int // open ones of events
}

// State returns alive or silent, or unknown: since the database is away, nothing is heard of another replica.
func (r ReplicaInfo) State(in DatabaseInfo) string {
	switch {
	case in.Problem != "" && !r.Self:
		return "unknown"
	case r.Alive || r.Self:
		return "alive"
	}
	return "silent"
}

// A ServerInfo is a PostgreSQL server.
type ServerInfo struct {
	Version   string
	Standby   bool   // it accepts no writes; otherwise, it is a primary
	Address   string // of the connection; empty: a Unix socket
	StartedAt time.Time
	// SynchronousStandbys is synchronous_standby_names: for which standbys a commit waits. Empty: for none.
	SynchronousStandbys string
}

// A StandbyInfo is a standby that is connected to the server.
type StandbyInfo struct {
	Name    string // its application_name
	Address string
	State   string // streaming, catchup, …
	Sync    string // async, potential, sync or quorum
	// LagBytes is how much of the server's log the standby has not replayed; nil: unknown.
	LagBytes *int64
	// Lag is how long the newest replayed part of the log took to be replayed; nil: nothing was written for a while.
	Lag *time.Duration
}

// A TableInfo is a table of the schema.
type TableInfo struct {
	Name  string
	Bytes int64 // with its indexes
}

// GrantsPaused returns for how much longer nothing is granted; zero: grants are not paused.
func (d DatabaseInfo) GrantsPaused() time.Duration {
	if d.Epoch.GrantsPausedUntil.IsZero() {
		return 0
	}
	return max(d.Epoch.GrantsPausedUntil.Sub(d.AsOf)-d.Age, 0)
}

// SizeText returns a number of bytes in the unit in which it has one to four digits.
func SizeText(bytes int64) string {
	for i, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if shifted := bytes >> (10 * i); shifted < 10_000 {
			return fmt.Sprintf("%d %s", shifted, unit)
		}
	}
	return fmt.Sprintf("%d TiB", bytes>>40)
}
