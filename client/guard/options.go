package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// Forever is an Options.Wait that ends with the context only.
const Forever time.Duration = math.MaxInt64

const (
	// DefaultRetry is for how long an acquire is sent again when nothing is said.
	DefaultRetry = 10 * time.Second
	// MaxMargin is the greatest margin that is taken unasked.
	MaxMargin = 5 * time.Second
)

// Options say what lease is wanted. The zero Options try, without waiting, for an
// exclusive lease with the usual TTL.
type Options struct {
	// Holder says to people who has the lock; empty: host name and process id.
	Holder   string
	Mode     lock.Mode       // zero: lock.Exclusive
	Capacity int             // how many permits there are; of lock.Permit only
	TTL      time.Duration   // zero: lock.UsualTTL; the service may have narrower bounds
	Grace    time.Duration   // after the end: nobody else may have the lock yet
	MaxHold  time.Duration   // since the grant, no renewal goes beyond; zero: no bound
	Metadata json.RawMessage // a JSON object for all to see, or nil

	// LeaseID is for who must be able to send the same acquire again from another
	// process; a lease that has ended is not granted again under its id. Zero: a
	// random one.
	LeaseID lock.LeaseID
	// Wait is for how long to wait for the lock; zero to try only.
	Wait time.Duration
	// Retry is for how long an acquire is sent again while the service cannot be
	// reached or says to come later, if that is longer than Wait; zero: UsualRetry;
	// negative: for Wait only.
	Retry time.Duration
	// OnRetry is told why an acquire failed that is sent again; nil tells nobody.
	OnRetry func(error)
	// Margin is how long before the lease's end it counts as lost. Choose it as long
	// as the work takes to stop, at most a third of the TTL; zero: a tenth,
	// LongestMargin at most.
	Margin time.Duration
	// OnState is told of each change of state, one after the other, with what led to
	// it: on AtRisk why the renewal failed, on Lost the loss, on Released why that
	// could not be sent. Nobody waits for it to return.
	OnState func(State, error)
}

// resolve returns o with its zero fields filled in, or an error that is
// lock.ErrInvalid if they do not go together.
func (o Options) resolve() (Options, error) {
	o.TTL = cmp.Or(o.TTL, lock.DefaultTTL)
	o.Margin = cmp.Or(o.Margin, min(o.TTL/10, MaxMargin))
	o.Retry = max(cmp.Or(o.Retry, DefaultRetry), 0)
	if o.Holder == "" {
		o.Holder = defaultHolder()
	}
	switch {
	case o.TTL < lock.MinTTL || o.TTL > lock.MaxTTL:
		return o, lock.Invalid("ttl", "is %v; give %v to %v", o.TTL, lock.MinTTL, lock.MaxTTL)
	case o.Margin < 0 || o.Margin > o.TTL/3:
		return o, lock.Invalid("margin", "is %v; give at most a third of the TTL, %v, or renewals come too late", o.Margin, o.TTL)
	case o.MaxHold > 0 && o.MaxHold <= o.Margin:
		return o, lock.Invalid("max_hold", "is %v; give more than the margin of %v, or the lease is lost at once", o.MaxHold, o.Margin)
	case o.Wait < 0:
		return o, lock.Invalid("wait", "is %v; give 0 to try only, or Forever", o.Wait)
	}
	return o, nil
}

// defaultHolder is the holder where none was given.
func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host" // for people only: not to know is no reason not to work
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// acquire returns the call that asks for the lease.
func (o Options) acquire(name string, id lock.LeaseID) lock.Acquire {
	return lock.Acquire{
		Name: name, LeaseID: id, Holder: o.Holder, Mode: o.Mode, Capacity: o.Capacity,
		TTL: o.TTL, Grace: o.Grace, MaxHold: o.MaxHold, Metadata: o.Metadata,
	}
}
