package guard

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// Forever is an Options.Wait without limit: only the context ends it.
const Forever time.Duration = math.MaxInt64

const (
	// DefaultRetry is the default of Options.Retry.
	DefaultRetry = 10 * time.Second
	// MaxDefaultMargin is the upper limit of the default margin.
	MaxDefaultMargin = 5 * time.Second
)

// Options describe the lease to acquire. The zero Options ask for an exclusive lease with the
// default TTL, without waiting.
type Options struct {
	// Holder names the holder for people; empty means host name and process id.
	Holder   string
	Mode     lock.Mode       // zero means lock.Exclusive
	Capacity int             // number of permits that there are; for lock.Permit only
	Permits  int             // number of permits to acquire, all or none; for lock.Permit only; zero means one
	TTL      time.Duration   // zero means lock.DefaultTTL; the service may have narrower bounds
	Grace    time.Duration   // time after the end during which the lock is granted to no other client
	MaxHold  time.Duration   // renewals extend the lease up to this time after the grant; zero means no limit
	Metadata json.RawMessage // a JSON object that all clients can read, or nil
	// Stays says that the lease does not end by itself, for work whose half-done state must be looked at: if it is not
	// renewed in time, the lock is suspect, and granted to no other client until an operator revokes it. The context of
	// the work is cancelled as without it, and the lost lease is not released. It is refused in a session, and where a
	// fail-over may forget the lease.
	Stays bool

	// OncePer says for how long the work is done, if it needs to be done only once. Then the acquire fails with
	// lock.ErrAlreadyDone if it is done, and after work that succeeds Do closes the lock for so long, see Once. With a
	// Period, For is the least time. It is for a single lock, in the mode lock.Exclusive. A Zone must be known here, too:
	// import time/tzdata into a program for systems without time zones.
	OncePer lock.Closing

	// Session keeps the lease alive, so the lease is not renewed by itself. TTL, Grace and Margin are then those of
	// the session and must be zero here. Nil means none.
	Session *Session
	// SessionID is that of a session which another process renews, for AcquireUnmanaged only. Zero means none.
	SessionID lock.SessionID
	// LeaseID allows another process to repeat the same acquire. A lease that has ended is not
	// granted again under its id. Zero means a random id.
	LeaseID lock.LeaseID
	// LeaseIDFile names a file that keeps the lease_id until the lease is released or lost, so that a process which takes
	// over the same work, such as a restarted container, goes on with the lease, its token and its place in the queue,
	// instead of waiting for the end of its predecessor's. Use it only where nothing of a process that was killed can go
	// on: two processes with one token cannot be told apart by a fence. While a process uses the file, the acquire of
	// another one fails with lock.ErrLeaseIDInUse. A file of other locks is refused. A file with the suffix .lock beside
	// it stays. Empty means none. It is for leases without a session, of Acquire and what is built on it.
	//
	// The content is a JSON object, with the names of the locks in order:
	//
	//	{"locks":["jobs:billing"],"lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","holder":"pod-0"}
	LeaseIDFile string
	// Task is the thread of work, by which the service finds deadlocks. Empty means a part of the task of the context,
	// which that of Do and Lease.Context has, or of the environment variable PADDOCK_TASK; or else a new one. For
	// AcquireUnmanaged it is none instead of a new one, and with a SessionID that task itself instead of a part of it.
	Task lock.TaskID
	// Wait is how long to wait for the lock; zero means not to wait.
	Wait time.Duration
	// Retry is how long an acquire is repeated while the service is unreachable or overloaded,
	// if that is longer than Wait. Zero means DefaultRetry, a negative value means Wait.
	Retry time.Duration
	// OnRetry is called with the error of each acquire that is repeated; it may be nil.
	OnRetry func(error)
	// Margin is how long before its end the lease counts as lost. Choose the time that the work
	// needs to stop, at most a third of the TTL. Zero means a tenth of the TTL, MaxDefaultMargin at most.
	Margin time.Duration
	// OnState is called for each change of state, one at a time, with its reason: for AtRisk
	// the error of the renewal, for Lost the loss, for Released the error of the release, if any.
	// The Lease does not wait for it to return. It may be nil.
	OnState func(State, error)
	// Observer sees acquires, renewals and losses. It may be nil.
	Observer Observer
}

// resolve returns o with defaults for its zero fields, or an error that is lock.ErrInvalid if the
// fields are invalid.
func (o Options) resolve() (Options, error) {
	if (o.Session != nil || o.SessionID != lock.SessionID{}) && (o.TTL != 0 || o.Grace != 0 || o.Margin != 0) {
		return o, lock.Invalid("TTL", "and Grace and Margin are those of the Session; leave them out")
	}
	if o.Session != nil {
		o.SessionID = o.Session.ID()
		s := o.Session.opts
		o.TTL, o.Grace, o.Margin = s.TTL, s.Grace, s.Margin
		o.Holder = cmp.Or(o.Holder, s.Holder)
	}
	o.TTL = cmp.Or(o.TTL, lock.DefaultTTL)
	o.Margin = cmp.Or(o.Margin, min(o.TTL/10, MaxDefaultMargin))
	o.Retry = max(cmp.Or(o.Retry, DefaultRetry), 0)
	if o.Holder == "" {
		o.Holder = defaultHolder()
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	switch {
	case o.TTL < lock.MinTTL || o.TTL > lock.MaxTTL:
		return o, lock.Invalid("TTL", "is %v; use %v to %v", o.TTL, lock.MinTTL, lock.MaxTTL)
	case o.Margin < 0 || o.Margin > o.TTL/3:
		return o, lock.Invalid("Margin", "is %v; use at most a third of the TTL of %v, or renewals come too late",
			o.Margin, o.TTL)
	case o.MaxHold > 0 && o.MaxHold <= o.Margin:
		return o, lock.Invalid("MaxHold", "is %v; use more than the Margin of %v, or the lease is lost at once",
			o.MaxHold, o.Margin)
	case o.LeaseIDFile != "" && (o.LeaseID != lock.LeaseID{} || o.SessionID != lock.SessionID{}):
		return o, lock.Invalid("LeaseIDFile", "is for a lease without Session, SessionID and LeaseID; leave those out")
	case o.Wait < 0:
		return o, lock.Invalid("Wait", "is %v; use 0 not to wait, or Forever", o.Wait)
	}
	_, err := lock.Release{Locks: []string{"a"}, LeaseID: newID(), Closed: o.OncePer}.Resolve() // before the work, not after it
	return o, inOptions(err)
}

// isOnce reports whether the work needs to be done only once.
func (o Options) isOnce() bool { return o.OncePer != lock.Closing{} }

// options are the names of fields of a request in the Options.
var options = map[string]string{
	"ttl_ms": "TTL", "grace_ms": "Grace", "max_hold_ms": "MaxHold", "holder": "Holder", "mode": "Mode", "capacity": "Capacity", "permits": "Permits",
	"metadata": "Metadata", "on_expiry": "Stays", "lease_id": "LeaseID", "session_id": "SessionID", "task_id": "Task",
	"closed_ms": "OncePer.For", "once_per": "OncePer.Period", "time_zone": "OncePer.Zone", "once": "OncePer",
}

// inOptions names the option in the text of a refusal of the service that names a field. The Field stays.
func inOptions(err error) error {
	if e := (*lock.Error)(nil); errors.As(err, &e) && e.Code == lock.ErrInvalid && options[e.Field] != "" {
		if rest, found := strings.CutPrefix(e.Detail, e.Field+" "); found {
			e.Detail = options[e.Field] + " " + rest
		}
	}
	return err
}

// defaultHolder returns the holder used if none is given.
func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host" // the holder is informational, so an unknown host is not an error
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// request returns the acquire request for the lease.
func (o Options) request(members []lock.Member, id lock.LeaseID) lock.Acquire {
	a := lock.Acquire{
		Locks: members, LeaseID: id, Holder: o.Holder, TTL: o.TTL, Grace: o.Grace, MaxHold: o.MaxHold, Metadata: o.Metadata,
		Stays: o.Stays, Task: o.Task, Once: o.isOnce(),
	}
	if a.SessionID = o.SessionID; a.SessionID != (lock.SessionID{}) {
		a.TTL, a.Grace = 0, 0
	}
	return a
}
